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
/** A name that is there and has no such record, or is not there: an answer. Everything else is no answer. */
const NO_SUCH = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * What a domain's own name servers say of an owner's claim; caches of others are not asked, so that a change counts at
 * once. TXT `_control.{name}` names the owner.
 */
export async function readProof(name: string, owner: string, rules: DomainRules): Promise<DomainProof> {
  const servers = await findServers(name, rules);
  if (servers.length === 0) return { cname: 'unknown', ownerProof: 'unknown' };
  const resolver = makeResolver(servers);
  const target = `${name}.${rules.zone}`.toLowerCase();
  const same = (text: string) => text.toLowerCase().replace(/\.$/, '');
  const [cname, ownerProof] = await Promise.all([
    answerOf(resolver.resolveCname(name), (found) => found.some((one) => same(one) === target)),
    answerOf(resolver.resolveTxt(`_control.${name}`), (found) =>
      found.some((parts) => parts.join('').trim().toLowerCase() === owner.toLowerCase()),
    ),
  ]);
  return { cname, ownerProof };
}

async function answerOf<T>(asked: Promise<T>, isRight: (found: T) => boolean): Promise<boolean | 'unknown'> {
  try {
    return isRight(await asked);
  } catch (error) {
    return NO_SUCH.has((error as NodeJS.ErrnoException).code ?? '') ? false : 'unknown';
  }
}

function makeResolver(servers: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  resolver.setServers([...servers]);
  return resolver;
}

/** Addresses of the name servers of the closest domain that has some; none where nobody answers. */
async function findServers(name: string, { resolvers, mayReach }: DomainRules): Promise<string[]> {
  const resolver = makeResolver(resolvers);
  const labels = name.split('.');
  for (let skipped = 0; skipped < labels.length - 1; skipped++) {
    const hosts = await resolver.resolveNs(labels.slice(skipped).join('.')).catch(() => []);
    if (hosts.length === 0) continue;
    const found = await Promise.all(
      hosts.slice(0, SERVERS_MAX).map(async (host) => {
        const families = [resolver.resolve4(host), resolver.resolve6(host)];
        return (await Promise.all(families.map((one) => one.catch(() => [])))).flat();
      }),
    );
    return found.flat().filter(mayReach).slice(0, SERVERS_MAX);
  }
  return [];
}
