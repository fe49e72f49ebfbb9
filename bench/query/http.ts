import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../packages/database/src/connect.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { startNode } from '../../services/core/src/testing/node.ts';
import { addressOf, type DataSet, hashOf } from '../data-set/data-set.ts';
import { createBodies } from '../data-set/signed-bodies.ts';
import type { Figures } from '../measure/figures.ts';
import { HttpClient } from '../measure/http-client.ts';
import { Times, timeOf } from '../measure/queries.ts';
import { readBeside } from '../measure/read-beside.ts';

const ROUNDS = 30;
const READERS = 50;
const PER_SECOND = 5;
const SECONDS = 8;
/** Messages taken in meanwhile. */
const WRITES_PER_SECOND = 200;
/** For a single message or aggregate. */
const GOAL_MS = 5;
/** Before times are taken: a node that is new compiles what it runs often. */
const WARM_SECONDS = 12;
const COUNTED_POLL_MS = 100;

/** Asks the node, at a path below /api/v0. */
type Ask = (path: string, body?: Buffer) => Promise<Buffer>;

/** Readers, each asking so often in a second, while messages come in by POST. */
function readWhileIngesting(ask: Ask, read: (index: number) => Promise<unknown>, seconds: number) {
  const bodies = createBodies(seconds * WRITES_PER_SECOND, `reading-${Date.now()}`);
  const write = (body: Buffer) => ask('/messages', body);
  return readBeside(
    { bodies, rate: WRITES_PER_SECOND, write },
    { readers: READERS, everyMs: 1_000 / PER_SECOND, read },
  );
}

async function timePaths(figures: Figures, ask: Ask, set: DataSet): Promise<void> {
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
    for (let round = 0; round < ROUNDS; round++) times.add(await timeOf(() => ask(path)));
    // Without the owner, which differs from data set to data set.
    figures.addTimes(path.replace(owner, 'OWNER'), times.all);
  }
}

async function timeLookUps(
  figures: Figures,
  ask: Ask,
  set: DataSet,
  pool: Database<Schema>['pool'],
): Promise<void> {
  const { rows } = await pool.query<{ owner: string; key: string }>(
    'select owner, key from aggregates limit 5000',
  );
  const reads = {
    'a message by hash': (index: number) => ask(`/messages/${hashOf(set.dice, (index * 7_919) % set.count)}`),
    'an aggregate by key': (index: number) => {
      const { owner, key } = rows[index % rows.length]!;
      return ask(`/aggregates/${owner}/${encodeURIComponent(key)}`);
    },
  };
  figures.group(
    `over HTTP, ${READERS} readers, ${PER_SECOND} requests a second each, while messages come in`,
  );
  for (const [name, read] of Object.entries(reads)) {
    await readWhileIngesting(ask, read, WARM_SECONDS);
    const { timesMs, seconds } = await readWhileIngesting(ask, read, SECONDS);
    figures.addTimes(name, timesMs, { goal: { of: 'p99', most: GOAL_MS } });
    figures.add(`${name}: messages taken meanwhile`, '/s', (SECONDS * WRITES_PER_SECOND) / seconds);
  }
}

/** A node that starts reads the keys of all messages beside what it is asked. */
async function untilCounted(ask: Ask): Promise<void> {
  const readState = async () => (JSON.parse(String(await ask('/sync/status'))) as { state: string }).state;
  while ((await readState()) === 'syncing') await delay(COUNTED_POLL_MS);
}

/** A part of the above through the whole node, a process of its own: routing, checks, JSON. */
export async function benchHttp(
  figures: Figures,
  { pool, databaseUrl }: Pick<Database<Schema>, 'pool'> & { readonly databaseUrl: string },
  set: DataSet,
  directory: string,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const settings = { SKERRY_CORE_RATE_LIMITS: 'no', SKERRY_CORE_GOSSIP: 'no' };
  const node = await startNode(directory, databaseUrl, settings);
  stack.defer(() => node.end('SIGTERM'));
  const client = stack.use(new HttpClient(node.url));
  const ask: Ask = (path, body) => client.ask(`/api/v0${path}`, body ? { method: 'POST', body } : undefined);
  await untilCounted(ask);
  await timePaths(figures, ask, set);
  await timeLookUps(figures, ask, set, pool);
}
