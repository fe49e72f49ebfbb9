import { NotOffered } from './sdk.ts';
import type { World } from './world.ts';

/** One thing that the SDK offers, as a client would use it. */
export interface Call {
  readonly name: string;
  /** Throws where it does not work, or where what it answers is not what was asked for. Left out where it cannot be made here. */
  readonly run?: (world: World) => Promise<void>;
  /** Why it is no fault of the network that is tested where it does not work. */
  readonly theirs?: string;
}

/** `theirs`: it does not work here for a reason that lies in the SDK, or needs the public network. */
export type Outcome = 'works' | 'fails' | 'theirs' | 'not offered';

export interface Result {
  readonly call: string;
  readonly outcome: Outcome;
  readonly why: string;
}

const TIMEOUT_MS = 90_000;
const WHY_CHARS = 300;

interface FailedRequest extends Error {
  readonly config?: { readonly method?: string; readonly url?: string };
  readonly response?: { readonly status: number; readonly data?: unknown };
  readonly errors?: unknown;
  readonly cause?: unknown;
}

/** Some errors carry another one as JSON in their text. */
function messageOf(message: string | undefined): string {
  try {
    return String((JSON.parse(message ?? '') as { message?: unknown }).message);
  } catch {
    return message ?? '';
  }
}

/** What an error says, and the answer that it is about, which the SDK puts in several places. */
function describe(error: unknown): string {
  const { message, response, config, errors, cause } = error as FailedRequest;
  const asked = config?.url === undefined ? '' : `${config.method?.toUpperCase()} ${config.url}: `;
  const inner = [errors, cause].find(
    (one) => typeof one === 'object' && one !== null && ('response' in one || 'isAxiosError' in one),
  );
  if (!response && inner !== undefined) return describe(inner);
  const said = response?.data instanceof Uint8Array ? Buffer.from(response.data).toString() : response?.data;
  const body = said === undefined ? '' : typeof said === 'string' ? said : JSON.stringify(said);
  const text = response
    ? `${asked}${response.status} ${body}`
    : `${asked}${messageOf(message) || String(error)}`;
  return text.replaceAll(/\s+/g, ' ').slice(0, WHY_CHARS);
}

async function withinTime(run: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)),
    TIMEOUT_MS,
  );
  try {
    await Promise.race([run, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Makes a call and says what became of it. */
export async function tryCall({ name, run, theirs }: Call, world: World): Promise<Result> {
  if (!run) return { call: name, outcome: 'theirs', why: theirs ?? '' };
  try {
    await withinTime(run(world));
    return { call: name, outcome: 'works', why: '' };
  } catch (error) {
    if (error instanceof NotOffered) return { call: name, outcome: 'not offered', why: error.message };
    const why = describe(error);
    return theirs === undefined
      ? { call: name, outcome: 'fails', why }
      : { call: name, outcome: 'theirs', why: `${theirs} (${why})` };
  }
}
