import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type pg from 'pg';
import type { Database } from '../../packages/database/src/connect.ts';
import { copyIn } from '../../packages/database/src/copy-in.ts';
import { CLAIMS_MAX } from '../../services/core/src/intake/verify/batch/claims.ts';
import { packTask } from '../../services/core/src/intake/verify/verifier.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import type { BareWorker } from './bare-worker.ts';

/** Where each message has rows of its own. What a batch has besides, totals and digests, is left out. */
const TABLES = ['messages', 'message_tags', 'events'] as const;
/** The most that a batch of a node has: each has a commit. */
const MESSAGES_PER_COMMIT = 2_000;

/** As many rows as a node sends the server in one piece. */
const ROWS_PER_CHUNK = 200;

/** Rows by table, as COPY writes them. */
export type BareRows = ReadonlyMap<string, readonly string[]>;

/** The order of pages, in which a node gets the messages of a peer: indexes that begin with a time then grow at their end. */
const PAGE_ORDER: Readonly<Record<(typeof TABLES)[number], string>> = {
  messages: 'order by "time", item_hash',
  message_tags: 'order by "time", item_hash',
  events: 'order by seq',
};

const LINE_FEED = 0x0a;

/** Each with its end. A million rows are more than one string can be. */
function linesOf(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let from = 0, to = 0; from < bytes.length; from = to) {
    const end = bytes.indexOf(LINE_FEED, from);
    to = end === -1 ? bytes.length : end + 1;
    lines.push(bytes.toString('utf8', from, to));
  }
  return lines;
}

/**
 * What taking messages in has written.
 * @param directory the server writes there
 * @param order of the rows: as they came, where left out
 */
export async function readRows(
  { pool }: Database<Schema>,
  directory: string,
  order?: 'of pages',
): Promise<BareRows> {
  const rows = new Map<string, readonly string[]>();
  for (const table of TABLES) {
    const file = join(directory, `bare-${table}`);
    await pool.query(`copy (select * from ${table} ${order ? PAGE_ORDER[table] : ''}) to '${file}'`);
    rows.set(table, linesOf(await readFile(file)));
  }
  return rows;
}

export const startBareWorker = (addon: string | undefined): Worker =>
  new Worker(new URL('./bare-worker.ts', import.meta.url), { workerData: { addon } satisfies BareWorker });

function* chunksOf(rows: readonly string[]): Generator<string> {
  for (let at = 0; at < rows.length; at += ROWS_PER_CHUNK) yield rows.slice(at, at + ROWS_PER_CHUNK).join('');
}

async function write(client: pg.PoolClient, rows: BareRows, from: number, to: number): Promise<void> {
  const copies = [...rows].map(([table, all]) => ({
    statement: `copy ${table} from stdin`,
    chunks: chunksOf(all.slice(Math.floor(from * all.length), Math.floor(to * all.length))),
  }));
  await client.query('begin');
  await copyIn(client, copies).done;
  await client.query('commit');
}

async function checkAll(worker: Worker, bodies: readonly Buffer[]): Promise<void> {
  for (let at = 0; at < bodies.length; at += CLAIMS_MAX) {
    const { packed, lengths } = packTask(bodies.slice(at, at + CLAIMS_MAX), 0);
    const done = once(worker, 'message');
    worker.postMessage({ packed, lengths }, [packed.buffer]);
    await done;
  }
}

/** Where the bodies come from, when not from memory. */
export interface BareSource {
  /** Resolves when so many have come. */
  has(count: number): Promise<void>;
}

const AT_HAND: BareSource = { has: async () => {} };

/**
 * What taking messages in cannot do without, in a node's processes: a thread hashes the bodies and checks their signatures, with the
 * library that a node has, and the database takes the rows of the same messages, ready as they are, into the same tables.
 */
export async function runBare(
  { pool }: Database<Schema>,
  rows: BareRows,
  bodies: readonly Buffer[],
  worker: Worker,
  source = AT_HAND,
): Promise<void> {
  const client = await pool.connect();
  try {
    let written = Promise.resolve();
    for (let at = 0; at < bodies.length; at += MESSAGES_PER_COMMIT) {
      const own = bodies.slice(at, at + MESSAGES_PER_COMMIT);
      await source.has(at + own.length);
      await checkAll(worker, own);
      await written;
      written = write(client, rows, at / bodies.length, (at + own.length) / bodies.length);
      // Met before the next ones are written.
      written.catch(() => {});
    }
    await written;
  } finally {
    client.release();
  }
}
