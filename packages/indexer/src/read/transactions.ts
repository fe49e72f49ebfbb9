import type { Page } from '@skerry/database';
import type pg from 'pg';
import { type BlockRange, type Bounds, countRows } from './bounds.ts';
import type { Cursor } from './cursor.ts';
import { type List, type Reading, readList } from './list.ts';

export interface TransactionFilter extends Bounds {
  /** Sender or receiver. Lower case, like the others. */
  readonly address?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface TransactionView {
  hash: string;
  block_number: number;
  from: string;
  to: string | null;
  value: string;
  gas: number;
  gas_price: string;
  timestamp: number;
}

interface Row extends TransactionView {
  readonly transaction_index: number;
}

const ROW = `'0x' || encode(hash, 'hex') as hash, block_number, transaction_index, '0x' || encode("from", 'hex') as "from",
  '0x' || encode("to", 'hex') as "to", value::text, gas, gas_price::text, "timestamp"`;
const ORDER = 'order by block_number desc, transaction_index desc';
const bytes = (address: string): Buffer => Buffer.from(address.slice(2), 'hex');

/** Newest first. Undefined where the network is not known. Throws CURSOR_REORGED, LIST_TOO_COSTLY, and what `turns` throws. */
export function listTransactions(
  pool: pg.Pool,
  networkName: string,
  filter: TransactionFilter,
  page: Page,
  reading: Reading = {},
): Promise<List<TransactionView> | undefined> {
  const address = filter.address ?? filter.to ?? filter.from;
  return readList<Row, TransactionView>(
    pool,
    { ...reading, networkName, bounds: filter, address, page },
    {
      async find({ client, networkId, range }) {
        const rows = await readRows(client, networkId, filter, range, page, reading.cursor);
        const total =
          address === undefined
            ? await countRows(client, networkId, 'transactions', {}, range, filter)
            : await countMatches(client, networkId, filter, range);
        return { rows, total, totalIsExact: true };
      },
      placeOf: (row) => ({ block: row.block_number, index: row.transaction_index }),
      describe: (_moment, rows) => rows.map(({ transaction_index: _, ...view }) => view),
    },
  );
}

/** One condition for each index that serves the filter; no row fits two of them. */
function alternativesOf(
  { address, from, to, fromTimestamp, toTimestamp }: TransactionFilter,
  range: BlockRange,
  parameters: unknown[],
): string[] {
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const all = [`block_number between ${add(range.from)} and ${add(range.to)}`];
  if (fromTimestamp !== undefined) all.push(`"timestamp" >= ${add(fromTimestamp)}`);
  if (toTimestamp !== undefined) all.push(`"timestamp" <= ${add(toTimestamp)}`);
  if (from !== undefined) all.push(`"from" = ${add(bytes(from))}`);
  if (to !== undefined) all.push(`"to" = ${add(bytes(to))}`);
  const common = all.join(' and ');
  if (address === undefined) return [common];
  const own = add(bytes(address));
  return [`${common} and "from" = ${own}`, `${common} and "to" = ${own} and "from" <> ${own}`];
}

async function readRows(
  client: pg.PoolClient,
  networkId: number,
  filter: TransactionFilter,
  range: BlockRange,
  page: Page,
  cursor: Cursor | undefined,
): Promise<Row[]> {
  const parameters: unknown[] = [];
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const offset = cursor ? 0 : page.offset;
  const after = cursor
    ? `and block_number <= ${add(cursor.block)} and (block_number, transaction_index) < (${add(cursor.block)}, ${add(cursor.index)})`
    : '';
  const each = alternativesOf(filter, range, parameters).map(
    (conditions) =>
      `(select * from indexer_transactions_n${networkId} where ${conditions} ${after} ${ORDER} limit ${page.limit + offset})`,
  );
  const { rows } = await client.query<Row>(
    `select ${ROW} from (${each.join(' union all ')}) newest ${ORDER} limit ${add(page.limit)} offset ${add(offset)}`,
    parameters,
  );
  return rows;
}

async function countMatches(
  client: pg.PoolClient,
  networkId: number,
  filter: TransactionFilter,
  range: BlockRange,
): Promise<number> {
  const parameters: unknown[] = [];
  const each = alternativesOf(filter, range, parameters).map(
    (conditions) => `(select count(*) as n from indexer_transactions_n${networkId} where ${conditions})`,
  );
  const { rows } = await client.query<{ total: number }>(
    `select sum(n)::bigint as total from (${each.join(' union all ')}) counts`,
    parameters,
  );
  return rows[0]!.total;
}
