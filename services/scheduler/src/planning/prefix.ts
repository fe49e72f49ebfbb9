import { isPrivateIpv6, isPublicAddress } from '@skerry/kit';
import { nodeProofAddress, type Reason } from '@skerry/protocol';

export const isPrivatePrefix = (prefix: string) => isPrivateIpv6(nodeProofAddress(prefix));

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
      message: `the IPv6 network ${prefix} is reserved and cannot belong to a node`,
    };
  return mayBePrivate
    ? null
    : { code: 'NODE_PREFIX_PRIVATE', message: `the node's IPv6 network ${prefix} is private` };
}
