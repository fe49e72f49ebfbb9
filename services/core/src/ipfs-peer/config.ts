import { type ConfigOf, defineConfig, type Setting, settings } from '@skerry/kit';

/** Whether it can be called is libp2p's to say; what has this form is no URL, and no host with a port. */
const MULTIADDR = /^(\/[^/\s]+){2,}$/;
const NONE = 'none';

function parseMultiaddr(text: string): string {
  if (MULTIADDR.test(text)) return text;
  throw new Error('expected multiaddrs such as /ip4/192.0.2.7/tcp/4001, comma-separated');
}

function parsePeerMultiaddr(text: string): string {
  if (MULTIADDR.test(text) && text.includes('/p2p/')) return text;
  throw new Error('expected multiaddrs such as /dns4/HOST/tcp/4001/p2p/ID, comma-separated, or "none"');
}

const firstPeers = settings.listOf(
  parsePeerMultiaddr,
  ['/ip4/104.131.131.82/tcp/4001/p2p/QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ'],
  'IPFS peers to call first: multiaddrs with /p2p/, comma-separated; none stays alone until it is called',
);
const bootstrap: Setting<string[]> = {
  ...firstPeers,
  parse: (text) => (text === NONE ? [] : firstPeers.parse(text)),
};

/** Settings of the IPFS peer. */
export const ipfsPeerConfig = defineConfig('SKERRY_IPFS', {
  coreUrl: settings.coreUrl('the core node whose IPFS files to serve and announce'),
  dataDir: settings.directory('data', 'ipfs', 'directory for the key of this peer'),
  host: settings.host(),
  port: settings.port(4023, 'port where the core node asks for blocks of others'),
  listen: settings.listOf(
    parseMultiaddr,
    ['/ip4/0.0.0.0/tcp/4001', '/ip6/::/tcp/4001'],
    'where to listen for IPFS peers: multiaddrs, comma-separated',
  ),
  announce: settings.listOf(
    parseMultiaddr,
    [],
    'public multiaddrs of this peer, where they differ from what it listens on',
  ),
  bootstrap,
  dhtProtocol: settings.text('/ipfs/kad/1.0.0', 'protocol of the DHT to join'),
  routers: settings.urls([], 'delegated routers to ask for providers beside the DHT: URLs, comma-separated'),
  announces: settings.flag(true, 'whether to announce in the DHT what the core node keeps'),
  announceHours: settings.integer(1, 48, 12, 'hours until a CID is announced again'),
  roundSeconds: settings.integer(1, 3_600, 60, 'how often to look for new CIDs, in seconds'),
  maxPeers: settings.integer(1, 10_000, 100, 'connections to peers'),
  bytesPerSecond: settings.integer(
    65_536,
    10_000_000_000,
    20_000_000,
    'bytes per second to send to all peers',
  ),
  bytesPerSecondPerPeer: settings.integer(
    65_536,
    10_000_000_000,
    5_000_000,
    'bytes per second to send to one peer',
  ),
  findMs: settings.integer(
    100,
    600_000,
    8_000,
    'how long to look for a block, in ms; less than SKERRY_CORE_IPFS_TIMEOUT_MS',
  ),
  allowPrivate: settings.flag(
    false,
    'whether to call peers at private addresses; for devnets and private networks',
  ),
});

export type IpfsPeerConfig = ConfigOf<typeof ipfsPeerConfig>;
