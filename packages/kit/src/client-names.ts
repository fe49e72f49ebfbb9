import type { IncomingMessage } from 'node:http';
import { clientKeyOf, createAddressSet, findClient } from './client-address.ts';
import { forwardedForOf, type RateLimitOptions } from './rate-limit.ts';

/** Who asks, as far as what there is is shared out among clients. */
export interface ClientName {
  /** An IPv4 address or a /64. */
  readonly key: string;
  /** One whose word about others may be believed: it is not limited itself. */
  readonly isExempt: boolean;
}

/** Names clients as the rate limits count them. */
export function createClientNames({
  trustedProxies,
  exempt,
}: Pick<RateLimitOptions, 'trustedProxies' | 'exempt'>): (request: IncomingMessage) => ClientName {
  const isTrustedProxy = createAddressSet(trustedProxies);
  const isExempt = createAddressSet(exempt);
  return ({ socket, headers }) => {
    const { address, isRelayed } = findClient(
      socket.remoteAddress ?? '',
      forwardedForOf(headers),
      isTrustedProxy,
    );
    return { key: clientKeyOf(address), isExempt: !isRelayed && isExempt(address) };
  };
}
