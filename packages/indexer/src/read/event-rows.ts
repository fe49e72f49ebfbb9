import type pg from 'pg';
import { ORDER, type Place } from './selection.ts';

export interface Row extends Place {
  readonly address: string | null;
  readonly event_id: number;
  readonly timestamp: number;
  readonly transaction_hash: string;
  readonly args: Record<string, unknown>;
}

/** Arguments of a page that are read at once; anybody may write logs of any length, and somebody else asks for a page of them. */
const LIGHT_BYTES = 1024 * 1024;

/** Told how much text the arguments of a page are, before more than a mebibyte of it is read. May throw. */
export type Hold = (bytes: number) => void;

/** The rows of some places, newest first. Throws what `hold` throws. */
export async function readRows(
  client: pg.PoolClient,
  table: string,
  places: readonly Place[],
  hold: Hold,
): Promise<Row[]> {
  if (places.length === 0) return [];
  const blocks = places.map((place) => place.block_number);
  const read = async (bytesMax: number) => {
    const { rows } = await client.query<Row & { readonly bytes: number }>(
      `with weighed as (
         select e.*, address, sum(octet_length(args::text)) over () as bytes
         from ${table} e join unnest($1::bigint[], $2::integer[]) as p (block_number, log_index) using (block_number, log_index)
           left join indexer_contracts c on c.id = e.contract_id
         where e.block_number between $3 and $4)
       select block_number, log_index, address, event_id, "timestamp", '0x' || encode(transaction_hash, 'hex') as transaction_hash,
         case when bytes <= $5 then args end as args, bytes
       from weighed ${ORDER}`,
      [blocks, places.map((place) => place.log_index), Math.min(...blocks), Math.max(...blocks), bytesMax],
    );
    return rows;
  };
  const rows = await read(LIGHT_BYTES);
  const bytes = rows[0]?.bytes ?? 0;
  if (bytes <= LIGHT_BYTES) return rows;
  hold(bytes);
  return read(bytes);
}
