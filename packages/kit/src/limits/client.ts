import type { IncomingHttpHeaders } from 'node:http';
import {
  type AddressSet,
  clientKeyOf,
  createAddressSet,
  findClient,
  spellAddress,
} from '../net/client-address.ts';
import type { OwnHosts } from './own-hosts.ts';

/** Who asks, as far as fairness between clients goes. */
export interface Client {
  /** Where the request comes from, in one spelling; of a proxy that is not trusted, the proxy's. */
  readonly address: string;
  /** What is counted as one client (client-address.ts). */
  readonly key: string;
  /** One of our own: not limited. */
  readonly isExempt: boolean;
  /** Some proxy that is not trusted sent the request on: everybody behind it counts as one client. */
  readonly isRelayed: boolean;
}

export interface ClientOptions {
  /** Proxies whose X-Forwarded-For is believed: addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Clients that are not limited: addresses and CIDR ranges. */
  readonly exempt: readonly string[];
  /** Nor are these. */
  readonly ownHosts?: OwnHosts;
}

/**
 * Addresses of which it is remembered what they are: a request asks for its client several times, and most addresses ask again. Reading
 * one takes microseconds.
 */
const REMEMBERED_MAX = 1_024;

interface Named extends Pick<Client, 'address' | 'key'> {
  readonly isListed: boolean;
}

/** @param isListed whether it is exempt whatever names stand for */
function rememberNames(isListed: AddressSet): (address: string) => Named {
  const known = new Map<string, Named>();
  return (address) => {
    const before = known.get(address);
    if (before) return before;
    const named = {
      address: spellAddress(address),
      key: clientKeyOf(address),
      isListed: isListed(address),
    };
    if (known.size >= REMEMBERED_MAX) known.clear();
    known.set(address, named);
    return named;
  };
}

/** Who is not limited, by their addresses. @param more addresses and CIDR ranges. Throws INVALID_CONFIG. */
export function createExemption(
  { exempt, ownHosts }: Pick<ClientOptions, 'exempt' | 'ownHosts'>,
  more: readonly string[] = [],
): AddressSet {
  const isListed = createAddressSet([...exempt, ...more]);
  return ownHosts === undefined
    ? isListed
    : (address) => isListed(address) || ownHosts.has(spellAddress(address));
}

/** What of a request says who asks. */
interface Asking {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

/** Other marks of a proxy say that there is somebody behind the peer, not who. */
function forwardedForOf(headers: IncomingHttpHeaders): string | undefined {
  const isProxied = headers.forwarded ?? headers['x-real-ip'] ?? headers.via;
  const forwardedFor = headers['x-forwarded-for'] ?? (isProxied === undefined ? undefined : 'unknown');
  return forwardedFor === undefined ? undefined : String(forwardedFor);
}

/** The one rule of who a client is and who is exempt; whoever counts something per client asks it. Throws INVALID_CONFIG. */
export function createClientOf(options: ClientOptions): (request: Asking) => Client {
  const isTrustedProxy = createAddressSet(options.trustedProxies);
  const nameOf = rememberNames(createAddressSet(options.exempt));
  return ({ socket, headers }) => {
    const found = findClient(socket.remoteAddress ?? '', forwardedForOf(headers), isTrustedProxy);
    const { isRelayed } = found;
    const { address, key, isListed } = nameOf(found.address);
    // Behind a proxy that is not trusted there may be anybody: its own exemption does not cover them.
    const isExempt = !isRelayed && (isListed || (options.ownHosts?.has(address) ?? false));
    return { address, key, isExempt, isRelayed };
  };
}
