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
  indexerFile: settings.optionalText('a file that says which chains are indexed (docs/indexer.md)'),
  maxStreams: settings.integer(1, 100_000, 1_000, 'event streams open at the same time'),
});

export type CoreConfig = ConfigOf<typeof coreConfig>;
