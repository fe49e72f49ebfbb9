import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { createLogger, listen, readConfig } from '@skerry/kit';
import { coreConfig } from '../services/core/src/config.ts';
import type { Database } from '../services/core/src/db/connect.ts';
import type { Schema } from '../services/core/src/db/schema.ts';
import { createDirectoryBlobStore } from '../services/core/src/files/directory-store.ts';
import { createApi } from '../services/core/src/http/api.ts';
import { startIndexer } from '../services/core/src/indexer/indexer.ts';
import { NO_NETWORKS } from '../services/core/src/indexer/settings.ts';
import { ALONE } from '../services/core/src/ipfs/choose-ipfs.ts';
import { createRooms } from '../services/core/src/rooms.ts';
import { routeSettingsOf } from '../services/core/src/route-settings.ts';
import { inlineVerifier } from '../services/core/src/verify/verifier.ts';
import { addressOf, type DataSet, hashOf } from './data-set.ts';
import { HEADER, Times, timeOf, timeReaders } from './query-measure.ts';

const ROUNDS = 30;
const READERS = 50;
const REQUESTS = 40;
const PER_SECOND = 5;

const agent = new Agent({ keepAlive: true, maxSockets: READERS });

const get = (url: string) =>
  new Promise<void>((resolve, reject) => {
    request(url, { agent }, (response) => {
      response.resume();
      response.once('end', () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`${url}: ${response.statusCode}`)),
      );
    })
      .once('error', reject)
      .end();
  });

/** A part of the above through the whole node: routing, checks, JSON. */
export async function benchHttp(database: Database<Schema>, set: DataSet, directory: string): Promise<void> {
  const log = createLogger('bench', 'error');
  const stop = new AbortController();
  await using indexer = await startIndexer({ pool: database.pool, settings: NO_NETWORKS, log });
  const rooms = await createRooms({
    indexer,
    database,
    blobs: await createDirectoryBlobStore(join(directory, 'files')),
    verifier: inlineVerifier,
    dataDir: directory,
    schedulers: new Set(),
    pendingHorizonMs: 3_600_000,
    vrfKeyEpoch: 1,
    publishers: new Set(),
    ipfs: ALONE,
    fileGraceMs: 86_400_000,
    settings: routeSettingsOf(readConfig(coreConfig, {})),
    now: Date.now,
    signal: stop.signal,
    log,
    isProcess: false,
  });
  const api = await createApi(rooms, log);
  const url = `${await listen(api, '127.0.0.1', 0)}/api/v0`;
  const owner = addressOf(set.dice, 0);
  const paths = [
    '/messages',
    `/messages?addresses=${owner}&channels=channel-1`,
    `/messages?addresses=${owner}&channels=channel-0`,
    '/messages?tags=ended&channels=channel-0',
    '/messages?types=POST&content.keys=content.text&page=50',
    `/messages?tags=tag-0&addresses=${owner}&content.keys=content.meta.source`,
    `/messages.json?contentTypes=app-1&startDate=1690000000&endDate=1700000000`,
    '/aggregates?key=profile',
    '/instances?status=running',
  ];
  console.log(`\n${'over HTTP'.padEnd(80)}${HEADER}   ms`);
  for (const path of paths) {
    const times = new Times();
    for (let round = 0; round < ROUNDS; round++) times.add(await timeOf(() => get(url + path)));
    console.log(`${path.slice(0, 78).padEnd(80)}${times.text}`);
  }
  const ask = (index: number) => get(`${url}/messages/${hashOf(set.dice, (index * 7_919) % set.count)}`);
  const times = await timeReaders(READERS, REQUESTS, ask, PER_SECOND);
  console.log(
    `${`a message by hash, ${READERS} readers, ${PER_SECOND} requests a second each`.padEnd(80)}${times.text}`,
  );
  agent.destroy();
  stop.abort();
  await api.close();
  await rooms.pipeline.close();
}
