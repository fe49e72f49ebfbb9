import { instanceAddress } from '@skerry/protocol';
import type { Ipv4Claim } from '../network/address-book.ts';
import type { OpenPorts } from '../network/host-ports.ts';
import { ipv4LinkOf } from '../network/ipv4.ts';
import { machineIdOf, macOf, type NetworkNames, tapName } from '../network/names.ts';
import type { GuestLink } from '../network/ruleset.ts';

/** Where an instance lives on this node. All of it follows from the node and the instance: nothing has to be remembered. */
export interface Place {
  readonly id: string;
  readonly tap: string;
  readonly mac: string;
  readonly machineId: string;
  /** `.../124` */
  readonly network: string;
  readonly guest: string;
}

export function placeOf(names: NetworkNames, ipv6Prefix: string, id: string): Place {
  const { network, guest } = instanceAddress(ipv6Prefix, id);
  return { id, tap: tapName(names, id), mac: macOf(id), machineId: machineIdOf(id), network, guest };
}

/** The same for the network, with the instance's part of the node's IPv4. Pure. */
export function guestLinkOf(
  { tap, network, guest }: Place,
  ipv4Pool: string,
  { allowedPorts, allowedUdpPorts = [] }: OpenPorts,
  { link, hostPorts }: Ipv4Claim,
): GuestLink {
  const ipv4 = ipv4LinkOf(ipv4Pool, link);
  return { tap, network, guest, allowedPorts, allowedUdpPorts, ipv4, hostPorts };
}
