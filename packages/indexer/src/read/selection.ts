import type { Page } from '@skerry/database';
import type pg from 'pg';
import type { ArgumentValues } from './arguments.ts';
import type { BlockRange, Bounds } from './bounds.ts';
import type { Cursor } from './cursor.ts';

/** Which events a list is of. */
export interface Selection {
  readonly table: string;
  readonly contractId: number | undefined;
  readonly eventIds: readonly number[] | undefined;
  readonly range: BlockRange;
  readonly bounds: Bounds;
  readonly args: readonly ArgumentValues[] | undefined;
  readonly cursor: Cursor | undefined;
}

/** Where a row is. What it holds is read once it is known how much that is (event-rows.ts). */
export interface Place {
  readonly block_number: number;
  readonly log_index: number;
}

/** Event types that are looked for one by one: a name is anybody's to declare, as often as they like. */
const APART_MAX = 64;

export const ORDER = 'order by block_number desc, log_index desc';

/** That a row has the values of one of the alternatives. */
export function conditionOf(args: readonly ArgumentValues[], parameters: unknown[]): string {
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const alternatives = args.map(({ contained, equal }) =>
    [
      `args @> ${add(contained)}::jsonb`,
      ...equal.map(([name, value]) => `args -> ${add(name)}::text = ${add(value)}::jsonb`),
    ].join(' and '),
  );
  return `(${alternatives.join(' or ')})`;
}

/** Conditions of a selection but for contract and event, and their parameters. */
export function conditionsOf({ range, bounds, args, cursor }: Selection, parameters: unknown[]): string {
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const conditions = [`block_number between ${add(range.from)} and ${add(range.to)}`];
  if (bounds.fromTimestamp !== undefined) conditions.push(`"timestamp" >= ${add(bounds.fromTimestamp)}`);
  if (bounds.toTimestamp !== undefined) conditions.push(`"timestamp" <= ${add(bounds.toTimestamp)}`);
  if (args) conditions.push(conditionOf(args, parameters));
  if (cursor) {
    conditions.push(`(block_number, log_index) < (${add(cursor.block)}, ${add(cursor.index)})`);
    // The same in a form by which partitions are left out.
    conditions.push(`block_number <= ${add(cursor.block)}`);
  }
  return conditions.join(' and ');
}

/** Walks down an index in order, once for each event type, and takes the newest of all. */
export async function findOrdered(client: pg.PoolClient, selection: Selection, page: Page): Promise<Place[]> {
  const { table, contractId, eventIds } = selection;
  const offset = selection.cursor ? 0 : page.offset;
  const parameters: unknown[] = [];
  const conditions = conditionsOf(selection, parameters);
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const tail = `${ORDER} limit ${add(page.limit)} offset ${add(offset)}`;
  const contract = contractId === undefined ? '' : `contract_id = ${add(contractId)} and`;
  if (!eventIds || eventIds.length > APART_MAX) {
    const ofEvents = eventIds ? `event_id = any(${add(eventIds)}) and` : '';
    const where = `${contract} ${ofEvents} ${conditions}`;
    const text = `select block_number, log_index from ${table} where ${where} ${tail}`;
    return (await client.query<Place>(text, parameters)).rows;
  }
  const each = eventIds.map(
    (id) =>
      `(select block_number, log_index from ${table} where ${contract} event_id = ${id} and ${conditions} ${ORDER} limit ${page.limit + offset})`,
  );
  const { rows } = await client.query<Place>(
    `select * from (${each.join(' union all ')}) newest ${tail}`,
    parameters,
  );
  return rows;
}
