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
  maxConnections: settings.integer(
    1,
    1_000_000,
    20_000,
    'connections open at the same time, on each listener',
  ),
});

export type GatewayConfig = ConfigOf<typeof gatewayConfig>;
