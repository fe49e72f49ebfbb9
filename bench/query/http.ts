import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { createLogger, listen, readConfig } from '@skerry/kit';
import type { Database } from '../../packages/database/src/connect.ts';
import { BOUNDLESS } from '../../packages/database/src/reserve.ts';
import { startIndexer } from '../../packages/indexer/src/indexer.ts';
import { NO_NETWORKS } from '../../packages/indexer/src/settings.ts';
import { createApi } from '../../services/core/src/api/api.ts';
import { coreConfig } from '../../services/core/src/config.ts';
import { inlineVerifier } from '../../services/core/src/intake/verify/verifier.ts';
import { openRooms, routeRoomsOf } from '../../services/core/src/rooms.ts';
import { createDirectoryBlobStore } from '../../services/core/src/store/files/directory-store.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { addressOf, type DataSet, hashOf } from '../data-set/data-set.ts';
import { createBodies } from '../data-set/signed-bodies.ts';
import type { Figures } from '../measure/figures.ts';
import { collectGarbage } from '../measure/garbage.ts';
import { Times, timeOf, timeReaders } from '../measure/queries.ts';

const ROUNDS = 30;
const READERS = 50;
const REQUESTS = 40;
const PER_SECOND = 5;
/** Messages taken in meanwhile. */
const WRITES_PER_SECOND = 200;
const WRITERS = 20;
/** For a single message or aggregate. */
const GOAL_MS = 5;

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

const post = (url: string, body: Buffer) =>
  new Promise<void>((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    request(`${url}/messages`, { agent, method: 'POST', headers }, (response) => {
      response.resume();
      response.once('end', () =>
        response.statusCode === 201 || response.statusCode === 200
          ? resolve()
          : reject(new Error(`POST: ${response.statusCode}`)),
      );
    })
      .once('error', reject)
      .end(body);
  });

/** Readers, each asking so often in a second, while messages come in by POST; how many of those were answered. */
async function timeWhileIngesting(url: string, ask: (index: number) => Promise<unknown>) {
  const seconds = REQUESTS / PER_SECOND;
  const bodies = createBodies(Math.ceil(seconds * WRITES_PER_SECOND), `reading-${Date.now()}`);
  collectGarbage();
  let written = 0;
  let isReading = true;
  const startMs = performance.now();
  const write = async (writer: number) => {
    for (let index = writer; index < bodies.length; index += WRITERS) {
      const dueMs = startMs + (index * 1000) / WRITES_PER_SECOND - performance.now();
      if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
      if (!isReading) return;
      await post(url, bodies[index]!);
      written++;
    }
  };
  const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  const times = await timeReaders(READERS, REQUESTS, ask, PER_SECOND);
  const tookMs = performance.now() - startMs;
  isReading = false;
  await writing;
  return { times, writesPerSecond: (written / tookMs) * 1000 };
}

async function timePaths(figures: Figures, url: string, set: DataSet): Promise<void> {
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
  figures.group('lists over HTTP');
  for (const path of paths) {
    const times = new Times();
    for (let round = 0; round < ROUNDS; round++) times.add(await timeOf(() => get(url + path)));
    // Without the owner, which differs from data set to data set.
    figures.addTimes(path.replace(owner, 'OWNER'), times.all);
  }
}

async function timeLookUps(
  figures: Figures,
  url: string,
  set: DataSet,
  pool: Database<Schema>['pool'],
): Promise<void> {
  const { rows } = await pool.query<{ owner: string; key: string }>(
    'select owner, key from aggregates limit 5000',
  );
  const asks = {
    'a message by hash': (index: number) =>
      get(`${url}/messages/${hashOf(set.dice, (index * 7_919) % set.count)}`),
    'an aggregate by key': (index: number) => {
      const { owner, key } = rows[index % rows.length]!;
      return get(`${url}/aggregates/${owner}/${encodeURIComponent(key)}`);
    },
  };
  figures.group(
    `over HTTP, ${READERS} readers, ${PER_SECOND} requests a second each, while messages come in`,
  );
  for (const [name, ask] of Object.entries(asks)) {
    const { times, writesPerSecond } = await timeWhileIngesting(url, ask);
    figures.addTimes(name, times.all, { goal: { of: 'p99', most: GOAL_MS } });
    figures.add(`${name}: messages taken meanwhile`, '/s', writesPerSecond);
  }
}

/** A part of the above through the whole node: routing, checks, JSON. */
export async function benchHttp(
  figures: Figures,
  database: Database<Schema>,
  set: DataSet,
  directory: string,
): Promise<void> {
  const log = createLogger('bench', 'error');
  const stop = new AbortController();
  await using indexer = await startIndexer({ pool: database.pool, settings: NO_NETWORKS, log });
  const config = {
    ...readConfig(coreConfig, {}),
    dataDir: directory,
    schedulers: [],
    scoringPublishers: [],
    knownCoreNodes: [],
  };
  const rooms = await openRooms(config, {
    ...{ indexer, database, log },
    blobs: await createDirectoryBlobStore(join(directory, 'files')),
    verifier: inlineVerifier,
    reserve: BOUNDLESS,
    links: [],
    now: Date.now,
    signal: stop.signal,
    isProcess: false,
  });
  const api = await createApi(routeRoomsOf(rooms, { addresses: () => [] }), log);
  const url = `${await listen(api, '127.0.0.1', 0)}/api/v0`;
  await timePaths(figures, url, set);
  await timeLookUps(figures, url, set, database.pool);
  agent.destroy();
  stop.abort();
  await api.close();
  await rooms.pipeline.close();
}
