import { createLogger, listen } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestDatabase } from '../packages/database/src/testing/database.ts';
import { startTestServer } from '../packages/database/src/testing/server.ts';
import type { Schema } from '../services/core/src/store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../services/core/src/testing/core.ts';
import { type Figures, tell } from './measure/figures.ts';
import { Times, timeOf } from './measure/queries.ts';

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
  let bytes = 0;
  const ask = async (index: number) => {
    const number = (index * 7_919) % NODES;
    const kind = number < NODES / 2 ? 'core' : 'compute';
    const response = await fetch(`${url}/api/v0/${kind}/${nodeId(number)}/metrics`);
    bytes = (await response.arrayBuffer()).byteLength;
    if (response.status !== 200) throw new Error(`the lookup answered ${response.status}`);
  };
  const goal = { of: 'p95', most: GOAL_MS } as const;
  const take = (name: string, times: Times) => {
    figures.addTimes(name, times.all, { goal });
    figures.addTimes(`${name}; the best of ${SAMES} in a row`, times.quiet);
  };
  /** The same lookup a few times: what disturbs the machine seldom disturbs all of them. */
  const askSames = async (index: number) => {
    const sames: number[] = [];
    for (let same = 0; same < SAMES; same++) sames.push(await timeOf(() => ask(index)));
    return sames;
  };
  const alone = new Times();
  for (let index = 0; index < REQUESTS; index++) alone.add(...(await askSames(index)));
  figures.group(`two weeks of one node, of a year of ${NODES} nodes`);
  figures.add('an answer', 'KiB', bytes / 1024);
  take('one reader, each node in turn', alone);
  const together = new Times();
  await Promise.all(
    Array.from({ length: READERS }, async (_, reader) => {
      for (let index = reader; index < REQUESTS; index += READERS) together.add(...(await askSames(index)));
    }),
  );
  take(`${READERS} readers that never pause`, together);
}
