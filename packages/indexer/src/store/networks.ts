import { inTransaction } from '@skerry/database';
import type pg from 'pg';
import type { Header } from '../chain/shape.ts';
import { createNetworkTables } from './partitions.ts';

/** What is kept of a network. */
export interface NetworkRow {
  readonly id: number;
  readonly name: string;
  readonly chainId: number;
  readonly genesisHash: string | null;
  /** A name for all that was read since it began at nothing, the last time. */
  readonly reading: string;
  readonly tipNumber: number | null;
  readonly tipHash: string | null;
  /** Nothing up to it is ever undone. */
  readonly floor: number;
  /** The last block that is final on the chain as it was read; above the floor where an earlier release wrote what endpoints claim. */
  readonly finalized: number | null;
  readonly head: number | null;
  readonly headTimestamp: number | null;
  readonly undoSeq: number;
  readonly haltCode: string | null;
  readonly haltMessage: string | null;
  /** When the tip moved last, or was last seen to be the head. */
  readonly progressAt: Date;
  /** When a scan that does not follow the tip moved last, or there began to be one. */
  readonly backfilledAt: Date;
  readonly requests: number;
}

const NETWORK_COLUMNS = `
  id, name, chain_id as "chainId", genesis_hash as "genesisHash", reading, tip_number as "tipNumber", tip_hash as "tipHash",
  floor_number as floor, finalized_number as finalized, head_number as head, head_timestamp as "headTimestamp",
  undo_seq as "undoSeq", halt_code as "haltCode", halt_message as "haltMessage", progress_at as "progressAt",
  backfilled_at as "backfilledAt", requests`;

type Queryable = pg.Pool | pg.PoolClient;

export async function findNetwork(db: Queryable, name: string): Promise<NetworkRow | undefined> {
  const { rows } = await db.query<NetworkRow>(
    `select ${NETWORK_COLUMNS} from indexer_networks where name = $1`,
    [name],
  );
  return rows[0];
}

export async function loadNetwork(db: Queryable, id: number): Promise<NetworkRow> {
  const { rows } = await db.query<NetworkRow>(
    `select ${NETWORK_COLUMNS} from indexer_networks where id = $1`,
    [id],
  );
  return rows[0]!;
}

export async function ensureNetwork(pool: pg.Pool, name: string, chainId: number): Promise<NetworkRow> {
  return inTransaction(pool, async (client) => {
    await client.query(
      'insert into indexer_networks (name, chain_id) values ($1, $2) on conflict (name) do nothing',
      [name, chainId],
    );
    const { rows } = await client.query<NetworkRow>(
      `select ${NETWORK_COLUMNS} from indexer_networks where name = $1 for update`,
      [name],
    );
    await createNetworkTables(client, rows[0]!.id);
    return rows[0]!;
  });
}

/** Blocks of the window, lowest first. */
export async function listWindow(
  db: Queryable,
  networkId: number,
  from = 0,
  to = Number.MAX_SAFE_INTEGER,
): Promise<Header[]> {
  const { rows } = await db.query<Header>(
    `select number, hash, parent_hash as "parentHash", "timestamp", bloom from indexer_blocks
     where network_id = $1 and number between $2 and $3 order by number`,
    [networkId, from, to],
  );
  return rows;
}

/**
 * What a look at the head has shown. What is final is written with the blocks that were compared with the chain (commitTail): those
 * that are stored may be of another one. Where the tip is the head, or nothing is asked for, that this was seen is the progress that
 * there can be.
 */
export async function noteHead(
  pool: pg.Pool,
  networkId: number,
  seen: {
    readonly head: Pick<Header, 'number' | 'hash' | 'timestamp'>;
    readonly requests: number;
  },
): Promise<void> {
  const { head, requests } = seen;
  await pool.query(
    `update indexer_networks n set head_number = $2, head_timestamp = $3,
       requests = requests + $4,
       progress_at = case when tip_hash = $5 or (tip_number is not null
         and not exists (select from indexer_scans where network_id = n.id)) then now() else progress_at end
     where id = $1`,
    [networkId, head.number, head.timestamp, requests, head.hash],
  );
}

export async function haltNetwork(
  pool: pg.Pool,
  networkId: number,
  code: string | null,
  message: string | null,
): Promise<void> {
  await pool.query('update indexer_networks set halt_code = $2, halt_message = $3 where id = $1', [
    networkId,
    code,
    message,
  ]);
}

/**
 * Forgets everything that was read of a network, and reads it again: what is asked for stays.
 * @param genesisHash of the chain that is read from now on; null where it is not known yet
 */
export async function resetNetwork(
  pool: pg.Pool,
  networkId: number,
  genesisHash: string | null,
): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query('set local statement_timeout = 0');
    await client.query('select from indexer_networks where id = $1 for no key update', [networkId]);
    const { rows } = await client.query<{ name: string }>(
      'delete from indexer_partitions where network_id = $1 returning name',
      [networkId],
    );
    for (const { name } of rows) await client.query(`drop table ${name}`);
    for (const table of ['blocks', 'undos', 'spans'])
      await client.query(`delete from indexer_${table} where network_id = $1`, [networkId]);
    await client.query(
      'update indexer_scans set next_block = from_block, prior_hash = null, live = false where network_id = $1',
      [networkId],
    );
    // Pages of the old chain end: their cursors count undos.
    await client.query(
      `update indexer_networks set genesis_hash = $2, reading = gen_random_uuid(), tip_number = null, tip_hash = null, floor_number = -1,
         finalized_number = null, head_number = null, head_timestamp = null, undo_seq = undo_seq + 1,
         halt_code = null, halt_message = null, progress_at = now(), backfilled_at = now() where id = $1`,
      [networkId, genesisHash],
    );
    await client.query(
      `insert into indexer_undos (network_id, seq, ancestor, depth)
       select id, undo_seq, -1, 0 from indexer_networks where id = $1`,
      [networkId],
    );
  });
}
