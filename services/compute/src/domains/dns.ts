import { Resolver } from 'node:dns/promises';
import type { MayReach } from '@skerry/kit';
import type { DomainProof } from './claims.ts';

export interface DomainRules {
  /** A name points to an instance by a CNAME to itself with this behind it: `www.example.org` to `www.example.org.ZONE`. */
  readonly zone: string;
  /** Resolvers that find the name servers of a domain: addresses, with a port where it is not 53. */
  readonly resolvers: readonly string[];
  /** Which of the name servers that a stranger's domain names are asked. */
  readonly mayReach: MayReach;
}

const TIMEOUT_MS = 3_000;
const TRIES = 2;
const SERVERS_MAX = 4;
/** A proof takes no longer, however many labels a name has, and however slow the servers are that its owner chose. */
const PROOF_MS = 10_000;
/** A name that is there and has no such record, or is not there: an answer. Everything else is no answer. */
const NO_SUCH = new Set(['ENODATA', 'ENOTFOUND']);

const isNoSuch = (error: unknown) => NO_SUCH.has((error as NodeJS.ErrnoException).code ?? '');

/**
 * What a domain's own name servers say of an owner's claim; caches of others are not asked, so that a change counts at
 * once. TXT `_control.{name}` names the owner. What cannot be asked, or not before the signal ends, is unknown.
 */
export async function readProof(
  name: string,
  owner: string,
  rules: DomainRules,
  signal: AbortSignal,
): Promise<DomainProof> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PROOF_MS)]);
  const { addresses, isClosest } = await findServers(name, rules, limit);
  if (addresses.length === 0 || limit.aborted) return { cname: 'unknown', ownerProof: 'unknown' };
  const resolver = makeResolver(addresses, limit);
  const target = `${name}.${rules.zone}`.toLowerCase();
  const same = (text: string) => text.toLowerCase().replace(/\.$/, '');
  const [cname, ownerProof] = await Promise.all([
    answerOf(resolver.resolveCname(name), (found) => found.some((one) => same(one) === target)),
    answerOf(resolver.resolveTxt(`_control.${name}`), (found) =>
      found.some((parts) => parts.join('').trim().toLowerCase() === owner.toLowerCase()),
    ),
  ]);
  // Servers of a domain above say of a name that it has no record, also where others have it.
  const sure = (answer: boolean | 'unknown') => (answer === false && !isClosest ? 'unknown' : answer);
  return { cname: sure(cname), ownerProof: sure(ownerProof) };
}

async function answerOf<T>(asked: Promise<T>, isRight: (found: T) => boolean): Promise<boolean | 'unknown'> {
  try {
    return isRight(await asked);
  } catch (error) {
    return isNoSuch(error) ? false : 'unknown';
  }
}

function makeResolver(servers: readonly string[], signal: AbortSignal): Resolver {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  resolver.setServers([...servers]);
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  return resolver;
}

interface FoundServers {
  /** None where nobody answers. */
  readonly addresses: readonly string[];
  /** Whether it is known that no domain that is closer to the name has servers of its own. */
  readonly isClosest: boolean;
}

/** Addresses of the name servers of the closest domain that has some. */
async function findServers(
  name: string,
  { resolvers, mayReach }: DomainRules,
  signal: AbortSignal,
): Promise<FoundServers> {
  const resolver = makeResolver(resolvers, signal);
  const labels = name.split('.');
  let isClosest = true;
  for (let skipped = 0; skipped < labels.length - 1 && !signal.aborted; skipped++) {
    const hosts = await resolver.resolveNs(labels.slice(skipped).join('.')).catch((error) => {
      isClosest &&= isNoSuch(error);
      return [];
    });
    if (hosts.length === 0) continue;
    const found = await Promise.all(
      hosts.slice(0, SERVERS_MAX).map(async (host) => {
        const families = [resolver.resolve4(host), resolver.resolve6(host)];
        return (await Promise.all(families.map((one) => one.catch(() => [])))).flat();
      }),
    );
    return { addresses: found.flat().filter(mayReach).slice(0, SERVERS_MAX), isClosest };
  }
  return { addresses: [], isClosest };
}
