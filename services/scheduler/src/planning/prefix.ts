import { isPublicAddress } from '@skerry/kit';
import { nodeProofAddress, type Reason } from '@skerry/protocol';

/** Unique local addresses (RFC 4193), and those of examples and laboratories (RFC 3849): routed within a private network. */
export const isPrivatePrefix = (prefix: string) => /^(f[cd]|2001:db8:)/.test(prefix);

/**
 * Why a network is none that a node can have instances in, whatever it proves. Special networks are not routed to a node, or
 * lead to an IPv4 address: loopback, link-local, multicast, NAT64, 6to4 (docs/scheduling.md). Pure.
 *
 * @param mayBePrivate the operator vouches for the node, or says that the network is private
 */
export function refusePrefix(prefix: string, mayBePrivate: boolean): Reason | null {
  if (isPublicAddress(nodeProofAddress(prefix))) return null;
  if (!isPrivatePrefix(prefix))
    return {
      code: 'NODE_PREFIX_REFUSED',
      message: `the IPv6 network ${prefix} is special and never a node's`,
    };
  return mayBePrivate
    ? null
    : { code: 'NODE_PREFIX_PRIVATE', message: `the IPv6 network ${prefix} of the node is private` };
}
