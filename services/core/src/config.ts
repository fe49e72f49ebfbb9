import { type ConfigOf, defineConfig, settings } from '@skerry/kit';

const UPLOAD_LIMIT_BYTES = 4 * 1024 ** 3;

/** Settings of the core node. */
export const coreConfig = defineConfig('SKERRY_CORE', {
  port: settings.port(4024, 'HTTP port'),
  host: settings.text('localhost', 'address to listen on; "::" for every address'),
  name: settings.text('skerry', 'what the node calls itself'),
  dataDir: settings.directory('data', 'core', 'where the database and the files are'),
  databaseUrl: settings.optionalSecret(
    'a PostgreSQL server to use instead of the embedded one (postgres://...)',
    'DATABASE_URL',
  ),
  schedulers: settings.list([], 'addresses of the schedulers whose allocations count, comma-separated'),
  allocationWaitMs: settings.integer(
    0,
    60_000,
    1_000,
    'how long POST /instances waits for the scheduler, in ms',
  ),
  uploadLimitBytes: settings.integer(
    1,
    Number.MAX_SAFE_INTEGER,
    UPLOAD_LIMIT_BYTES,
    'the largest file that is taken, in bytes',
  ),
  rateLimits: settings.flag(true, 'whether requests are counted and refused beyond their rate'),
  rateGeneral: settings.integer(1, 1_000_000, 100, 'general requests of one client in a minute'),
  rateAuthenticated: settings.integer(1, 1_000_000, 300, 'signed requests of one client in a minute'),
  rateHeavy: settings.integer(
    1,
    1_000_000,
    10,
    'requests of one client in a minute that make the node compute',
  ),
  rateExempt: settings.addressRanges(
    ['127.0.0.0/8', '::1'],
    'clients that are not limited: addresses and ranges, comma-separated; "none" for none',
  ),
  trustedProxies: settings.addressRanges(
    [],
    'proxies whose X-Forwarded-For is believed: addresses and ranges, comma-separated',
  ),
  drainMs: settings.integer(
    0,
    12_000,
    10_000,
    'how long running requests may go on when the node stops, in ms',
  ),
  pendingHorizonSeconds: settings.integer(
    1,
    2_592_000,
    3_600,
    'how long a message may lack a file or another message before it is rejected, in seconds',
  ),
  verifyWorkers: settings.integer(
    0,
    256,
    0,
    'threads that verify signatures; 0 for one less than there are cores',
  ),
  webhookTimeoutMs: settings.integer(
    100,
    30_000,
    15_000,
    'how long one delivery to a webhook may take, in ms',
  ),
  webhookAllowHttp: settings.flag(false, 'whether webhooks may be http; for development'),
  webhookAllowAddresses: settings.addressRanges(
    [],
    'addresses and ranges that webhooks may be at although they are not public; for development',
  ),
  maxStreams: settings.integer(1, 100_000, 1_000, 'event streams open at the same time'),
});

export type CoreConfig = ConfigOf<typeof coreConfig>;
