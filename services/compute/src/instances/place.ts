import { instanceAddress } from '@skerry/protocol';
import { machineIdOf, macOf, type NetworkNames, tapName } from '../network/names.ts';

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
