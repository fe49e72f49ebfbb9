import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createLogger, listen } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestDatabase } from '../packages/database/src/testing/database.ts';
import { startTestServer } from '../packages/database/src/testing/server.ts';
import type { Schema } from '../services/core/src/store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../services/core/src/testing/core.ts';
import { type Figures, tell } from './measure/figures.ts';
import { Times, timeOf } from './measure/queries.ts';
import type { Lookups } from './metrics-readers.ts';

const NODES = 1_000;
const HOURS = 8_760;
/** Hours that one statement writes. */
const HOURS_AT_ONCE = 240;
const REQUESTS = 1_000;
const SAMES = 3;
const READERS = 8;
const GOAL_MS = 20;

const nodeId = (index: number) => sha256Hex(`node ${index}`);

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
  const goal = { of: 'p95', most: GOAL_MS } as const;
  const take = (name: string, times: Times) => {
    figures.addTimes(name, times.all, { goal });
    figures.addTimes(`${name}; the best of ${SAMES} in a row`, times.quiet);
  };
  /** Read by a process of its own, so that reading costs the server nothing but its part of the processors. */
  const read = async (readers: number): Promise<Times> => {
    const child = fork(fileURLToPath(new URL('./metrics-readers.ts', import.meta.url)));
    const ended = new AbortController();
    child.once('exit', (code) => ended.abort(new Error(`the readers ended with ${code}`)));
    child.send({ urls: paths.map((path) => url + path), readers, sames: SAMES } satisfies Lookups);
    const [timesMs] = (await once(child, 'message', ended)) as [readonly number[][]];
    child.disconnect();
    const times = new Times();
    for (const sames of timesMs) times.add(...sames);
    return times;
  };
  const answer = await fetch(url + paths[0]);
  figures.group(`two weeks of one node, of a year of ${NODES} nodes`);
  figures.add('an answer', 'KiB', (await answer.arrayBuffer()).byteLength / 1024);
  take('one reader, each node in turn', await read(1));
  take(`${READERS} readers that never pause`, await read(READERS));
}
