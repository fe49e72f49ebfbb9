import { inTransaction } from '@skerry/database';
import type pg from 'pg';
import type { Header } from '../chain/shape.ts';
import { EMPTY_BATCH, type RowBatch } from '../decode/rows.ts';
import { Moved } from './moved.ts';
import type { RowKind } from './partitions.ts';
import { copyRows, mergeRows } from './rows.ts';
import type { Pass, Scan } from './scans.ts';

const UNIQUE_VIOLATION = '23505';

/** What was read up to this block, and is final, is of another chain than the one that is followed. */
export class OffChain extends Error {
  override readonly name = 'OffChain';
  readonly block: number;

  constructor(block: number) {
    super(`what was read up to block ${block} is of another chain`);
    this.block = block;
  }
}

type Write = typeof copyRows;

/** Rows that are there already are rare (two scans meet at one row): COPY first, then the slower way. */
async function commit(
  pool: pg.Pool,
  merge: boolean,
  body: (client: pg.PoolClient, write: Write) => Promise<void>,
): Promise<void> {
  if (!merge) {
    try {
      await inTransaction(pool, (client) => body(client, copyRows));
      return;
    } catch (error) {
      if ((error as pg.DatabaseError).code !== UNIQUE_VIOLATION) throw error;
    }
  }
  await inTransaction(pool, (client) => body(client, mergeRows));
}

/** Keeps a stretch of a backfill: its rows and how far its scans are, or nothing. Throws Moved. */
export async function commitStretch(
  pool: pg.Pool,
  networkId: number,
  pass: Pick<Pass, 'kind' | 'scans'>,
  stretch: { from: number; to: number; lastHash: string; batch: RowBatch },
): Promise<void> {
  await commit(pool, pass.kind === 'transactions', async (client, write) => {
    const { rowCount } = await client.query(
      `update indexer_scans set next_block = $3, prior_hash = $4
       where id = any($1) and next_block = $2 and not live`,
      [pass.scans.map(({ id }) => id), stretch.from, stretch.to + 1, stretch.lastHash],
    );
    if (rowCount !== pass.scans.length) throw new Moved();
    await write(client, pass.kind, networkId, stretch.batch);
  });
  // Apart: whoever follows the tip locks the network first and then its scans, and one would wait for the other.
  await pool.query('update indexer_networks set backfilled_at = now() where id = $1', [networkId]);
}

export interface TailStep {
  /** The tip that the step was made from; null for the first. */
  readonly fromHash: string | null;
  /** The last block that stands: below the tip where the chain was reorganised. */
  readonly ancestor: number;
  /** Blocks after the ancestor. */
  readonly blocks: readonly Header[];
  readonly floor: number;
  /** Not above the floor; null where nobody has said it. */
  readonly finalized: number | null;
  readonly rows: Readonly<Record<RowKind, RowBatch>>;
}

/** Below the floor the window keeps some blocks, so that a backfill that ends there can join. */
export const WINDOW_BELOW_FLOOR = 64;

/** Undoes what a reorganisation took back and adds what came instead, in one transaction. Throws Moved. */
export async function commitTail(pool: pg.Pool, networkId: number, step: TailStep): Promise<void> {
  await commit(pool, false, async (client, write) => {
    const tip = await lockTip(client, networkId);
    if (tip.hash !== step.fromHash) throw new Moved();
    if (tip.number !== null && step.ancestor < tip.number)
      await undo(client, networkId, step.ancestor, tip.number);
    await insertBlocks(client, networkId, step.blocks);
    for (const kind of ['events', 'transactions'] as const)
      await write(client, kind, networkId, step.rows[kind]);
    const newTip = step.blocks.at(-1);
    const parameters = newTip
      ? [newTip.number, newTip.hash]
      : await findBlock(client, networkId, step.ancestor);
    await client.query(
      `update indexer_networks set tip_number = $2, tip_hash = $3, floor_number = greatest(floor_number, $4),
         finalized_number = greatest(
           case when finalized_number > floor_number then floor_number else finalized_number end, $5),
         progress_at = now() where id = $1`,
      [networkId, ...parameters, step.floor, step.finalized],
    );
    await client.query('delete from indexer_blocks where network_id = $1 and number < $2', [
      networkId,
      step.floor - WINDOW_BELOW_FLOOR,
    ]);
  });
}

/** Rows that refer to the network, such as the spans of a backfill, can be added meanwhile. */
async function lockTip(
  client: pg.PoolClient,
  networkId: number,
): Promise<{ number: number | null; hash: string | null }> {
  const { rows } = await client.query<{ number: number | null; hash: string | null }>(
    'select tip_number as number, tip_hash as hash from indexer_networks where id = $1 for no key update',
    [networkId],
  );
  return rows[0]!;
}

async function findBlock(
  client: pg.PoolClient,
  networkId: number,
  number: number,
): Promise<[number, string]> {
  const { rows } = await client.query<{ hash: string }>(
    'select hash from indexer_blocks where network_id = $1 and number = $2',
    [networkId, number],
  );
  if (!rows[0]) throw new Moved();
  return [number, rows[0].hash];
}

async function undo(client: pg.PoolClient, networkId: number, ancestor: number, tip: number): Promise<void> {
  for (const kind of ['events', 'transactions'])
    await client.query(`delete from indexer_${kind}_n${networkId} where block_number > $1`, [ancestor]);
  await client.query('delete from indexer_blocks where network_id = $1 and number > $2', [
    networkId,
    ancestor,
  ]);
  // What has read into the window and does not follow the tip yet goes back as well.
  const [, hash] = await findBlock(client, networkId, ancestor);
  await client.query(
    `update indexer_scans set next_block = greatest(from_block, $2), prior_hash = case when from_block <= $2 then $3 end
     where network_id = $1 and not live and next_block > greatest(from_block, $2)`,
    [networkId, ancestor + 1, hash],
  );
  // The spans above the floor are of one block each.
  await client.query('delete from indexer_spans where network_id = $1 and from_block > $2', [
    networkId,
    ancestor,
  ]);
  await client.query(
    `with moved as (update indexer_networks set undo_seq = undo_seq + 1 where id = $1 returning undo_seq)
     insert into indexer_undos (network_id, seq, ancestor, depth) select $1, undo_seq, $2, $3 from moved`,
    [networkId, ancestor, tip - ancestor],
  );
}

async function insertBlocks(
  client: pg.PoolClient,
  networkId: number,
  blocks: readonly Header[],
): Promise<void> {
  if (blocks.length === 0) return;
  const column = (key: keyof Header) => blocks.map((block) => block[key]);
  await client.query(
    `insert into indexer_blocks (network_id, number, hash, parent_hash, "timestamp", bloom)
     select $1, * from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[])`,
    [networkId, column('number'), column('hash'), column('parentHash'), column('timestamp'), column('bloom')],
  );
}

export interface JoinStep {
  /** The tip of the window that the blocks are of. */
  readonly tipHash: string;
  readonly kind: RowKind;
  /** All at one block. */
  readonly scans: readonly Scan[];
  /** From that block on; none where the scans have reached the tip. */
  readonly blocks: readonly Header[];
  readonly batch: RowBatch;
}

/** Scans that have reached the window go on in it; those that come to its tip are live from then on. Throws Moved. */
export async function commitJoin(pool: pg.Pool, networkId: number, join: JoinStep): Promise<void> {
  await commit(pool, join.kind === 'transactions', async (client, write) => {
    const tip = await lockTip(client, networkId);
    if (tip.hash !== join.tipHash) throw new Moved();
    const [from, last] = [join.scans[0]!.nextBlock, join.blocks.at(-1)];
    const next = last ? last.number + 1 : from;
    const { rowCount } = await client.query(
      `update indexer_scans set next_block = $3, prior_hash = coalesce($4, prior_hash), live = to_block is null and $5
       where id = any($1) and next_block = $2 and not live`,
      [join.scans.map(({ id }) => id), from, next, last?.hash ?? null, next === tip.number! + 1],
    );
    if (rowCount !== join.scans.length) throw new Moved();
    await write(client, join.kind, networkId, join.batch);
    await client.query('update indexer_networks set backfilled_at = now() where id = $1', [networkId]);
  });
}

/** After a long absence: the live scans go back to the backfill, and the window starts anew at the floor. Throws Moved. */
export async function commitDemotion(
  pool: pg.Pool,
  networkId: number,
  fromHash: string,
  start: Header,
): Promise<void> {
  await inTransaction(pool, async (client) => {
    const tip = await lockTip(client, networkId);
    if (tip.hash !== fromHash) throw new Moved();
    await client.query(
      `update indexer_scans set live = false, next_block = greatest(from_block, $2),
         prior_hash = case when from_block <= $2 then $3 end where network_id = $1 and live`,
      [networkId, tip.number! + 1, tip.hash],
    );
    await client.query('delete from indexer_blocks where network_id = $1', [networkId]);
    await insertBlocks(client, networkId, [start]);
    await client.query(
      `update indexer_networks set tip_number = $2, tip_hash = $3, floor_number = greatest(floor_number, $2),
         backfilled_at = now() where id = $1`,
      [networkId, start.number, start.hash],
    );
  });
}

export const NO_ROWS: TailStep['rows'] = { events: EMPTY_BATCH, transactions: EMPTY_BATCH };
