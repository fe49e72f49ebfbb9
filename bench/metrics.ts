import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createLogger, listen } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestDatabase } from '../packages/database/src/testing/database.ts';
import { startTestServer } from '../packages/database/src/testing/server.ts';
import { lookupOf, windowOf } from '../services/core/src/state/measurements/node-metrics.ts';
import type { Schema } from '../services/core/src/store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../services/core/src/testing/core.ts';
import { type Figures, quantile, tell } from './measure/figures.ts';
import { type Query, Times, timeOf } from './measure/queries.ts';
import { startBareServer } from './metrics-bare.ts';
import type { Lookups } from './metrics-readers.ts';

const NODES = 1_000;
const HOURS = 8_760;
/** Hours that one statement writes. */
const HOURS_AT_ONCE = 240;
const REQUESTS = 1_000;
const SAMES = 3;
const READERS = 8;
const GOAL_MS = 20;
/** Of what a bare server takes, where that is more than the goal: nobody gets below it. */
const OF_THE_LEAST = 0.9;
/** In which the core node and the bare server are read in turns. */
const TURNS = 4;
const ROWS_MAX = 50_000;

const nodeId = (index: number) => sha256Hex(`node ${index}`);

/** The statement of a path, as the core node asks it. */
function queryOf({ rooms: { db } }: TestCore, path: string): Query {
  const [, , , kind, id] = path.split('/');
  const window = windowOf(undefined, undefined, Date.now() / 1000);
  const order = { form: 'columns', isNewestFirst: false, limit: ROWS_MAX } as const;
  return lookupOf(kind as 'core' | 'compute', id!, window, order).compile(db);
}

/** Reads by a process of its own, so that reading costs the server nothing but its part of the processors. */
async function read(urls: readonly string[], readers: number): Promise<Times> {
  const child = fork(fileURLToPath(new URL('./metrics-readers.ts', import.meta.url)));
  const ended = new AbortController();
  child.once('exit', (code) => ended.abort(new Error(`the readers ended with ${code}`)));
  child.send({ urls, readers, sames: SAMES } satisfies Lookups);
  const [timesMs] = (await once(child, 'message', ended)) as [readonly number[][]];
  child.disconnect();
  const times = new Times();
  for (const sames of timesMs) times.add(...sames);
  return times;
}

/** A year of measurements as they come: hour after hour, each node in every hour; half of the nodes are core nodes. */
async function load({ rooms: { db } }: TestCore, untilSeconds: number): Promise<void> {
  const owner = signers.monitor.address;
  const ids = Array.from({ length: NODES }, (_, index) => nodeId(index));
  await sql`insert into metrics_nodes (kind, node_id)
    select case when n <= ${NODES / 2} then 'core' else 'compute' end, id
    from unnest(${ids}::text[]) with ordinality as given (id, n) order by n`.execute(db);
  await sql`insert into metrics_messages (item_hash, owner)
    select encode(sha256(h::text::bytea), 'hex'), ${owner} from generate_series(1, ${HOURS}) h order by h`.execute(
    db,
  );
  for (let from = 1; from <= HOURS; from += HOURS_AT_ONCE)
    await sql`insert into node_metrics
      (node, message, place, measured_at, asn, version, base_latency, base_latency_ipv4, metrics_latency,
       aggregate_latency, file_download_latency, txs_total, pending_messages, eth_height_remaining)
      select n, h, n - 1, ${untilSeconds}::float8 - (${HOURS} - h) * 3600 - random() * 3000, 64512 + n % 100, '0.1.0',
        random(), random(), random(), random(), random(), 0, 0, 0
      from generate_series(${from}::int, ${Math.min(HOURS, from + HOURS_AT_ONCE - 1)}::int) h,
        generate_series(1, ${NODES}) n
      order by h, n`.execute(db);
  await sql`analyze`.execute(db);
}

/** The core node and the bare server in turns, each a part of the paths. */
async function takeReaders(
  figures: Figures,
  name: string,
  readers: number,
  servers: { readonly core: string; readonly bare: string },
  paths: readonly string[],
): Promise<void> {
  const times = { core: new Times(), bare: new Times() };
  for (let turn = 0; turn < TURNS; turn++) {
    const some = paths.filter((_, index) => index % TURNS === turn);
    for (const server of ['core', 'bare'] as const) {
      const urls = some.map((path) => servers[server] + path);
      times[server].addAll(await read(urls, readers));
    }
  }
  const most = Math.max(GOAL_MS, quantile(times.bare.all, 0.95) / OF_THE_LEAST);
  figures.addTimes(`${name}; a bare server`, times.bare.all);
  figures.addTimes(name, times.core.all, { goal: { of: 'p95', most } });
  figures.addTimes(`${name}; the best of ${SAMES} in a row`, times.core.quiet);
}

/** The lookup of one node's last two weeks over HTTP, with a year of a thousand nodes in the database. */
export async function benchMetrics(figures: Figures): Promise<void> {
  const log = createLogger('bench', 'error');
  await using server = await startTestServer(log, {
    shared_buffers: '256MB',
    autovacuum: 'on',
    max_wal_size: '4GB',
  });
  await using database = await createTestDatabase<Schema>({
    migrations: MIGRATIONS,
    serverUrl: server.url,
    log,
  });
  await using core = await createTestCore({ database, log });
  const loadMs = await timeOf(() => load(core, Date.now() / 1000));
  const { rows } = await sql<{ count: string; size: string }>`select count(*) as count,
    pg_size_pretty(pg_total_relation_size('node_metrics')) as size from node_metrics`.execute(core.rooms.db);
  tell(`${rows[0]!.count} rows, ${rows[0]!.size}, written in ${(loadMs / 1000).toFixed(0)} s`);
  const url = await listen(core.api, '127.0.0.1', 0);
  const paths = Array.from({ length: REQUESTS }, (_, index) => {
    const number = (index * 7_919) % NODES;
    return `/api/v0/${number < NODES / 2 ? 'core' : 'compute'}/${nodeId(number)}/metrics`;
  });
  await using bare = await startBareServer(database.url, READERS, (path) => queryOf(core, path));
  const answer = await fetch(url + paths[0]);
  const [own, least] = await Promise.all([answer.json(), (await fetch(bare.url + paths[0])).json()]);
  if (JSON.stringify(own) !== JSON.stringify(least))
    throw new Error('the bare server answers something else');
  figures.group(`two weeks of one node, of a year of ${NODES} nodes`);
  figures.add('an answer', 'KiB', JSON.stringify(own).length / 1024);
  const servers = { core: url, bare: bare.url };
  await takeReaders(figures, 'one reader, each node in turn', 1, servers, paths);
  await takeReaders(figures, `${READERS} readers that never pause`, READERS, servers, paths);
}
