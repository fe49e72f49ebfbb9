import { readServices, type Service } from '../answers.ts';
import { ask } from '../ask.ts';
import { AskFailure } from '../failure.ts';

/** What a status service answers that does not know one of the parameters. */
const UNKNOWN_PARAMETER = 'INVALID_PARAMETERS';

/** A compute node that never answered since anybody announced it. */
const isUnheard = ({ permalink, last_success: success }: Service) =>
  permalink.startsWith('compute-') && success === null;

/** What the parameters of the list ask for, of all that there are. Pure. */
function selectServices(all: readonly Service[], asked: URLSearchParams): Service[] {
  const [online, permalink, limit] = ['online', 'permalink', 'limit'].map((name) => asked.get(name));
  return all
    .filter(
      (one) =>
        (asked.get('heard') !== 'true' || !isUnheard(one)) &&
        (online === null || String(one.online) === online) &&
        (permalink === null || one.permalink === permalink),
    )
    .slice(0, limit === null ? undefined : Number(limit));
}

/**
 * Services of the status service's list. One of an older release knows no parameters: it gives all of them, and the page selects. Throws as `ask`
 * does.
 */
export async function askServices(url: string, signal: AbortSignal): Promise<readonly Service[]> {
  try {
    return await ask(url, readServices, signal);
  } catch (error) {
    if (!(error instanceof AskFailure) || error.code !== UNKNOWN_PARAMETER) throw error;
    const [list, query] = url.split('?', 2) as [string, string | undefined];
    return selectServices(await ask(list, readServices, signal), new URLSearchParams(query));
  }
}
