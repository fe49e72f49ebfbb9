import type { Reason } from '@skerry/protocol';
import type { ComputeConfig } from '../config.ts';
import { AddressBook } from './address-book.ts';
import { parsePortRange } from './host-ports.ts';
import { type NetworkNames, networkNames } from './names.ts';
import { NodeNetwork } from './network.ts';
import { findHostIpv4, loadIpv4Pool } from './pool.ts';

type NetworkConfig = Pick<
  ComputeConfig,
  | 'dataDir'
  | 'ipv4Pool'
  | 'lanOpen'
  | 'openNetworks'
  | 'guestConnections'
  | 'guestMbit'
  | 'hostPorts'
  | 'announceIpv4'
>;

export interface GuestNetwork {
  readonly names: NetworkNames;
  /** The private IPv4 network of all guests. */
  readonly ipv4Pool: string;
  readonly network: NodeNetwork;
  readonly addresses: AddressBook;
  /** This machine's public IPv4 address; undefined where nobody knows one. */
  readonly hostIpv4: string | undefined;
}

/** Where nothing runs, nobody gets an address. */
const NO_POOL = '172.16.0.0/20';

/**
 * The network of the node's guests, of which nothing is put up yet.
 * @param obstacle why this machine runs no virtual machines: then nothing is chosen or kept
 */
export async function openNetwork(
  config: NetworkConfig,
  { nodeId, ipv6Prefix }: { readonly nodeId: string; readonly ipv6Prefix: string },
  obstacle: Reason | null,
): Promise<GuestNetwork> {
  const { lanOpen, openNetworks, guestConnections, guestMbit } = config;
  const names = networkNames(nodeId);
  const ipv4Pool = obstacle === null ? await loadIpv4Pool(config.dataDir, config.ipv4Pool) : NO_POOL;
  const network = new NodeNetwork({
    names,
    prefix: ipv6Prefix,
    ipv4Pool,
    lanOpen,
    openNetworks,
    guestConnections,
    guestMbit,
  });
  const addresses = new AddressBook({ table: names.table, ports: parsePortRange(config.hostPorts) });
  const hostIpv4 = config.announceIpv4 ?? (obstacle === null ? await findHostIpv4() : undefined);
  return { names, ipv4Pool, network, addresses, hostIpv4 };
}
