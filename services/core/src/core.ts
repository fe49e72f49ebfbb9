import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Host, listen, type RunningService } from '@skerry/kit';
import { parseEvmAddress } from '@skerry/protocol';
import type { CoreConfig } from './config.ts';
import { openDatabase } from './db/connect.ts';
import { migrate } from './db/migrate.ts';
import type { Schema } from './db/schema.ts';
import { createEventLog } from './events/log.ts';
import { createDirectoryBlobStore } from './files/blob-store.ts';
import { Files } from './files/files.ts';
import { createHealth } from './health/health.ts';
import { createApi } from './http/api.ts';
import { Pipeline } from './messages/pipeline.ts';
import { createCoreMetrics, watchCore } from './metrics/metrics.ts';
import { routeSettingsOf } from './route-settings.ts';

const MIGRATIONS = fileURLToPath(new URL('./db/migrations', import.meta.url));

/** Builds the core node from the floor up, and takes it down in reverse. */
export async function startCore(config: CoreConfig, { log, signal }: Host): Promise<RunningService> {
  const schedulers = new Set<string>(config.schedulers.map(parseEvmAddress));
  await using stack = new AsyncDisposableStack();
  const database = stack.use(
    await openDatabase<Schema>({
      databaseUrl: config.databaseUrl,
      dataDir: join(config.dataDir, 'postgres'),
      log,
      signal,
    }),
  );
  await migrate({ pool: database.pool, directory: MIGRATIONS, log });
  const blobs = await createDirectoryBlobStore(join(config.dataDir, 'files'));
  const now = Date.now;
  const db = database.kysely;
  const events = createEventLog(db);
  const metrics = await createCoreMetrics({ isProcess: true });
  const pipeline = new Pipeline({ db, events, schedulers, now, observer: metrics.pipeline });
  stack.defer(() => pipeline.idle());
  const files = new Files({ db, blobs, pipeline, now });
  watchCore(metrics, { db, pool: database.pool, pipeline });
  // The host's signal, or our own disposal: either way streams end and the node says that it stops.
  const stop = new AbortController();
  const stopping = AbortSignal.any([signal, stop.signal]);
  const { dataDir } = config;
  const health = createHealth({ db, pipeline, dataDir, signal: stopping, log });
  const settings = routeSettingsOf(config);
  const rooms = { db, pipeline, events, files, metrics, health, now, signal: stopping, settings };
  const api = await createApi(rooms, log);
  stack.defer(() => api.close());
  stack.defer(() => stop.abort());
  const url = await listen(api, config.host, config.port);
  const owned = stack.move();
  return { urls: [url], [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
