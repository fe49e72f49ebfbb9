import { type ConfigOf, defineConfig, type Setting, settings } from '@skerry/kit';

const MAX_SYNC_PERIOD_MS = 300_000;
const DOMAIN = /^(?!.{240})([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

const domain: Setting<string> = {
  ...settings.text('skerry.localhost', 'the parent domain of all names'),
  parse: (text) => {
    const name = text.toLowerCase().replace(/\.$/, '');
    if (!DOMAIN.test(name)) throw new Error('expected a domain name');
    return name;
  },
};

/** Settings of the gateway. */
export const gatewayConfig = defineConfig('SKERRY_GATEWAY', {
  host: settings.text('localhost', 'address to listen on; "::" for every address'),
  httpPort: settings.port(8080, 'port for plain HTTP to instances'),
  httpsPort: settings.port(8443, 'port for TLS to instances'),
  apiPort: settings.port(8081, "port of the gateway's own API"),
  domain,
  coreUrl: settings.url('http://localhost:4024', 'the core node that tells of instances'),
  nodeUrl: settings.optionalText(
    'a compute node: its custom domains are carried, and nothing else (a front beside the node)',
  ),
  dataDir: settings.directory('data', 'gateway', 'where the last good table is kept'),
  apiKeys: settings.secretList(
    'keys that may ask for a sync, comma-separated; several, so that one can be replaced',
  ),
  apiKeyFile: settings.optionalText('a file with more such keys, one a line'),
  syncPeriodMs: settings.integer(100, MAX_SYNC_PERIOD_MS, 60_000, 'time between two full syncs, in ms'),
  upstreamHttpPort: settings.integer(1, 65_535, 80, 'port of instances for plain HTTP'),
  upstreamHttpsPort: settings.integer(1, 65_535, 443, 'port of instances for TLS'),
  allowLocal: settings.flag(
    false,
    'also connect to instances at loopback and link-local addresses: for tests only',
  ),
  allowPrivate: settings.flag(
    false,
    'also connect to instances in private networks (fc00::/7); for devnets and private networks',
  ),
  dataPlane: settings.choice(
    ['auto', 'native', 'typescript'],
    'auto',
    'what passes TLS on: a small native program, plain TypeScript, or the native one where it can be built',
  ),
  cacheDir: settings.directory('cache', 'gateway', 'where the native data plane is kept once it is built'),
  sharePort: settings.flag(false, 'let other processes listen on the same ports and share the connections'),
  replace: settings.flag(
    false,
    'take over from a gateway that runs on the same data directory, without a connection lost (native data plane)',
  ),
  drainTimeoutMs: settings.integer(
    0,
    10_000,
    3_000,
    'how long open connections may go on when the gateway stops, in ms',
  ),
  replacedDrainTimeoutMs: settings.integer(
    0,
    86_400_000,
    3_600_000,
    'how long open connections may go on when another gateway has taken over, in ms',
  ),
  accessLog: settings.choice(
    ['off', 'sampled', 'full'],
    'off',
    'a line for one in 100, or each, TLS connection and HTTP request',
  ),
  maxConnectionsPerClient: settings.integer(
    1,
    1_000_000,
    4096,
    'of one IPv4 address or one IPv6 /64, on each listener',
  ),
  maxConnectionsPerInstance: settings.integer(
    1,
    1_000_000,
    16_384,
    'and requests under way, to one instance',
  ),
  maxConnections: settings.integer(
    1,
    1_000_000,
    20_000,
    'connections open at the same time, on each listener',
  ),
});

export type GatewayConfig = ConfigOf<typeof gatewayConfig>;
