import { type ConfigOf, defineConfig, rateSettings, type Setting, settings } from '@skerry/kit';
import { QUIC_WISHES, type QuicWish } from './dataplane/port.ts';

const SYNC_INTERVAL_MAX_MS = 300_000;

/** Also what flags are given as. */
const quic: Setting<QuicWish> = {
  ...settings.choice(
    QUIC_WISHES,
    'auto',
    'forward QUIC (HTTP/3) by server name on the HTTPS port over UDP, which the native data plane does; auto: where it can be',
  ),
  parse: (text) => (text === 'auto' ? 'auto' : settings.flag(undefined, '').parse(text) ? 'yes' : 'no'),
};

/** Settings of the gateway. */
export const gatewayConfig = defineConfig(
  'SKERRY_GATEWAY',
  {
    host: settings.host(),
    httpPort: settings.port(8080, 'port for plain HTTP to instances'),
    httpsPort: settings.port(8443, 'port for TLS to instances'),
    apiPort: settings.port(8081, "port of the gateway's own API"),
    apiHost: {
      ...settings.optionalText(
        "address at which the gateway's own API listens, where it is not that of the other ports",
      ),
      isHost: true,
    },
    domain: settings.domain('skerry.localhost', 'parent domain of all host names'),
    coreUrl: settings.coreUrl('core node to read instances from'),
    nodeUrl: settings.optionalUrl(
      'a compute node: forward only its custom domains (as a front beside that node)',
    ),
    dataDir: settings.directory('data', 'gateway', 'directory for the last good table'),
    apiKeys: settings.secretList('keys that may request a sync, comma-separated; several allow rotation'),
    apiKeyFile: settings.optionalText('file with more such keys, one per line'),
    syncIntervalMs: settings.integer(100, SYNC_INTERVAL_MAX_MS, 60_000, 'time between two full syncs, in ms'),
    upstreamHttpPort: settings.integer(1, 65_535, 80, 'instance port for plain HTTP'),
    upstreamHttpsPort: settings.integer(1, 65_535, 443, 'instance port for TLS'),
    allowLocal: settings.flag(
      false,
      'also connect to instances at loopback and link-local addresses; for tests only',
    ),
    allowPrivate: settings.flag(
      false,
      'also connect to instances in private networks (fc00::/7); for devnets and private networks',
    ),
    dataPlane: settings.choice(
      ['auto', 'native', 'typescript', 'haproxy'],
      'auto',
      'program that forwards TLS: native, TypeScript, HAProxy, or native if it can be built (auto)',
    ),
    installPackages: settings.flag(
      true,
      'as root on Debian: install HAProxy with apt-get if it is wanted and missing',
    ),
    quic,
    cacheDir: settings.directory('cache', 'gateway', 'directory for the compiled native data plane'),
    program: settings.optionalText(
      'a native data plane that is ready (`skerry-plane-*` of a release), in place of compiling one',
    ),
    programSha256: settings.optionalText('SHA-256 of that program, in hexadecimal: another one is refused'),
    sharePort: settings.flag(false, 'share the ports with other gateway processes'),
    replace: settings.flag(
      false,
      'take over from a running gateway on the same data directory without dropping connections (native data plane)',
    ),
    drainMs: settings.integer(
      0,
      10_000,
      3_000,
      'how long open connections may last after the gateway stops, in ms',
    ),
    replacedDrainMs: settings.integer(
      0,
      86_400_000,
      3_600_000,
      'how long open connections may last after another gateway took over, in ms',
    ),
    accessLog: settings.choice(
      ['off', 'sampled', 'full'],
      'off',
      'log no, one in 100 or all connections of TLS and QUIC, and HTTP requests',
    ),
    maxConnectionsPerClient: settings.integer(
      1,
      1_000_000,
      4096,
      'connections from one IPv4 address or IPv6 /64, per listener; an HTTP/2 request beside another counts as one',
    ),
    maxConnectionsPerInstance: settings.integer(
      1,
      1_000_000,
      16_384,
      'connections and running requests to one instance',
    ),
    maxConnections: settings.integer(
      1,
      1_000_000,
      20_000,
      'open connections per listener; an HTTP/2 request beside another counts as one; where all are taken, a client that has none takes the oldest of the client that has most',
    ),
    ...rateSettings({
      heavy: 'explanations why a name does not answer,',
      // The console that follows a new machine asks every two seconds.
      heavyPerMinute: 60,
      exempt:
        'clients of the gateway\'s own API without limits: addresses and ranges, comma-separated; "none" for none',
    }),
  },
  { drainTimeoutMs: 'drainMs', replacedDrainTimeoutMs: 'replacedDrainMs' },
);

export type GatewayConfig = ConfigOf<typeof gatewayConfig>;
