import { inTransaction } from '@skerry/database';
import type pg from 'pg';

/**
 * The rows of a network: `indexer_events_n3` for network 3, partitioned by block range. A table for each network, so that
 * reading in order of blocks walks from partition to partition and stops when the page is full.
 */
export type RowKind = 'events' | 'transactions';

export const tableOf = (kind: RowKind, networkId: number): string => `indexer_${kind}_n${networkId}`;

const COLUMNS: Readonly<Record<RowKind, string>> = {
  events: `
    block_number bigint not null, log_index integer not null, contract_id integer not null, event_id integer not null,
    "timestamp" bigint not null, transaction_hash bytea not null, args jsonb not null,
    primary key (block_number, log_index)`,
  transactions: `
    block_number bigint not null, transaction_index integer not null, hash bytea not null, "from" bytea not null,
    "to" bytea, value numeric not null, gas bigint not null, gas_price numeric not null, "timestamp" bigint not null,
    primary key (block_number, transaction_index)`,
};

/** Beside the primary key, which serves lists without a filter. */
const INDEXES: Readonly<Record<RowKind, readonly (readonly [suffix: string, definition: string])[]>> = {
  events: [
    ['c', '(contract_id, event_id, block_number, log_index)'],
    ['e', '(event_id, block_number, log_index)'],
    ['a', 'using gin (args jsonb_path_ops)'],
  ],
  transactions: [
    ['f', '("from", block_number, transaction_index)'],
    ['t', '("to", block_number, transaction_index)'],
  ],
};

const BUILD_MEMORY = '256MB';

export async function createNetworkTables(client: pg.PoolClient | pg.Pool, networkId: number): Promise<void> {
  for (const kind of ['events', 'transactions'] as const)
    await client.query(
      `create table if not exists ${tableOf(kind, networkId)} (${COLUMNS[kind]}) partition by range (block_number)`,
    );
}

interface Partition {
  readonly name: string;
  readonly kind: RowKind;
  readonly from: number;
  readonly to: number;
}

/** Makes partitions before rows need them, and their indexes once they are worth it. */
export class Partitions {
  readonly #pool: pg.Pool;
  readonly #networkId: number;
  readonly #blocks: number;
  readonly #known = new Set<string>();
  #unfinished = true;

  /** @param blocks in one partition */
  constructor(pool: pg.Pool, networkId: number, blocks: number) {
    this.#pool = pool;
    this.#networkId = networkId;
    this.#blocks = blocks;
  }

  /** Makes the partitions of a range, bare: indexes made at once when it is full cost a fraction of what they cost row by row. */
  async ensure(kind: RowKind, from: number, to: number): Promise<void> {
    for (let index = Math.floor(from / this.#blocks); index * this.#blocks <= to; index++) {
      if (this.#known.has(`${kind} ${index}`)) continue;
      await this.#create(this.#at(kind, index));
      this.#known.add(`${kind} ${index}`);
      this.#unfinished = true;
    }
  }

  /** Makes the indexes of the partitions that lie wholly below a block; of all without one. */
  async finish(belowBlock?: number): Promise<void> {
    if (!this.#unfinished) return;
    const { rows } = await this.#pool.query<Partition>(
      `select kind, name, from_block as from, to_block as to from indexer_partitions
       where network_id = $1 and not indexed order by from_block`,
      [this.#networkId],
    );
    const ready = rows.filter(({ to }) => belowBlock === undefined || to <= belowBlock);
    for (const partition of ready) await this.#index(partition);
    if (ready.length === rows.length && belowBlock === undefined) this.#unfinished = false;
  }

  forget(): void {
    this.#known.clear();
    this.#unfinished = true;
  }

  #at(kind: RowKind, index: number): Partition {
    const from = index * this.#blocks;
    return { kind, from, to: from + this.#blocks, name: `${tableOf(kind, this.#networkId)}_b${from}` };
  }

  async #create({ kind, name, from, to }: Partition): Promise<void> {
    await inTransaction(this.#pool, async (client) => {
      const { rowCount } = await client.query(
        `insert into indexer_partitions (network_id, name, kind, from_block, to_block, indexed)
         values ($1, $2, $3, $4, $5, false) on conflict do nothing`,
        [this.#networkId, name, kind, from, to],
      );
      if (rowCount === 0) return;
      await client.query(
        `create table ${name} partition of ${tableOf(kind, this.#networkId)} for values from (${from}) to (${to})`,
      );
    });
  }

  async #index({ kind, name, from }: Partition): Promise<void> {
    await inTransaction(this.#pool, async (client) => {
      await client.query(
        `set local statement_timeout = 0; set local maintenance_work_mem = '${BUILD_MEMORY}'`,
      );
      const { rows } = await client.query<{ indexed: boolean }>(
        'select indexed from indexer_partitions where network_id = $1 and kind = $2 and from_block = $3 for update',
        [this.#networkId, kind, from],
      );
      if (rows[0]?.indexed !== false) return;
      for (const [suffix, definition] of INDEXES[kind])
        await client.query(`create index ${name}_${suffix} on ${name} ${definition}`);
      await client.query(
        'update indexer_partitions set indexed = true where network_id = $1 and kind = $2 and from_block = $3',
        [this.#networkId, kind, from],
      );
      await client.query(`analyze ${name}`);
    });
  }
}
