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
import { createApi } from './http/api.ts';
import { startIndexer } from './indexer/indexer.ts';
import { followIndexPosts } from './indexer/posts.ts';
import { loadIndexerSettings } from './indexer/settings.ts';
import { Pipeline } from './messages/pipeline.ts';

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
  const pipeline = new Pipeline({ db, events, schedulers, now });
  stack.defer(() => pipeline.idle());
  const files = new Files({ db, blobs, pipeline, now });
  const indexing = await loadIndexerSettings(config.indexerFile);
  const indexer = stack.use(await startIndexer({ pool: database.pool, settings: indexing, log }));
  stack.use(followIndexPosts({ db, pool: database.pool, events, indexer, log }));
  const { name: nodeName, allocationWaitMs, uploadLimitBytes, maxStreams } = config;
  const settings = { nodeName, allocationWaitMs, uploadLimitBytes, maxStreams };
  const api = await createApi({ db, pipeline, events, files, indexer, now, signal, settings }, log);
  stack.defer(() => api.close());
  const url = await listen(api, config.host, config.port);
  const owned = stack.move();
  return { urls: [url], [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
