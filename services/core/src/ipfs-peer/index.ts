import type { Keeping, Service } from '@skerry/kit';
import { type IpfsPeerConfig, ipfsPeerConfig } from './config.ts';

const keeping: Keeping<IpfsPeerConfig> = {
  entries: [{ path: 'peer.key', kind: 'secret', what: 'the identity by which other IPFS software knows it' }],
};

/** The IPFS peer of a core node: Bitswap and provider records. */
export const ipfsPeerService: Service<IpfsPeerConfig> = {
  name: 'ipfs',
  summary: 'makes what a core node keeps of IPFS known to other IPFS software, and fetches what that has',
  config: ipfsPeerConfig,
  keeping,
  // Its libraries are loaded where it runs alone.
  start: async (config, host) => (await import('./start.ts')).startIpfsPeer(config, host),
};
