import { prepared } from '@skerry/database';
import { type NodeKind, RECORD_NUMBERS } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';

export interface MetricsWindow {
  /** Unix seconds, inclusive. */
  readonly from: number;
  /** Unix seconds, inclusive; Infinity for no end. */
  readonly to: number;
}

/** `columns`: an object of arrays of equal length, one of each column. `rows`: an array of objects without nulls. */
export type MetricsForm = 'columns' | 'rows';

export interface Measured {
  readonly measurements: number;
  /** All of them, in the form that was asked for. */
  readonly json: string;
}

const WINDOW_SECONDS = 14 * 86_400;

/** The window that a request means: the last two weeks, or two weeks before its end; 0 counts as not given. */
export function windowOf(
  startDate: number | undefined,
  endDate: number | undefined,
  nowSeconds: number,
): MetricsWindow {
  const [start, end] = [startDate || undefined, endDate || undefined];
  return { from: start ?? (end ?? nowSeconds) - WINDOW_SECONDS, to: end ?? Number.POSITIVE_INFINITY };
}

/** The columns of a kind, in the order in which they are told. */
const columnsOf = (kind: NodeKind) =>
  ['item_hash', 'measured_at', ...RECORD_NUMBERS[kind], 'asn', 'version'] as const;

interface MetricsOrder {
  readonly form: MetricsForm;
  readonly isNewestFirst: boolean;
  /** Measurements at most. */
  readonly limit: number;
}

/**
 * The statement of a lookup. PostgreSQL writes the JSON: two weeks are four thousand values, and to read, keep and write each
 * of them takes Node as long again as all the rest of an answer. A join would be planned as a hash of every message there is;
 * the hash of each measurement's own is one step of an index.
 */
export function lookupOf(
  kind: NodeKind,
  nodeId: string,
  window: MetricsWindow,
  { form, isNewestFirst, limit }: MetricsOrder,
): RawBuilder<Measured> {
  const direction = isNewestFirst ? sql`desc` : sql`asc`;
  const numbers = RECORD_NUMBERS[kind].map((column) => sql.ref(`r.${column}`));
  const members = columnsOf(kind).map((column) => sql`${sql.lit(column)}, json_agg(${sql.ref(column)})`);
  const told = {
    columns: sql`json_build_object(${sql.join(members)})`,
    rows: sql`json_agg(json_strip_nulls(row_to_json(measured)))`,
  };
  return sql<Measured>`${prepared()}
    select count(*)::integer as measurements, ${told[form]}::text as json from (
      select (select item_hash from metrics_messages where id = r.message) as item_hash,
        r.measured_at, ${sql.join(numbers)}, r.asn, r.version
      from node_metrics r
      where r.node = (select id from metrics_nodes where kind = ${kind} and node_id = ${nodeId})
        and r.measured_at >= ${window.from}::float8 and r.measured_at <= ${window.to}::float8
      order by r.measured_at ${direction}, item_hash, r.place limit ${limit}) measured`;
}

/** What reaches further back than is asked for by nearly all is read as a list that may take long. */
const isLong = ({ from, to }: MetricsWindow, nowSeconds: number) =>
  Math.min(to, nowSeconds) - from > WINDOW_SECONDS;

/** Measurements of one node in order of time. Throws LIST_TOO_COSTLY, and what the turns of whoever asks throw. */
export async function readNodeMetrics(
  db: Kysely<Schema>,
  kind: NodeKind,
  nodeId: string,
  window: MetricsWindow,
  { nowSeconds, ...order }: MetricsOrder & { readonly nowSeconds: number },
): Promise<Measured> {
  const read = async (on: Kysely<Schema>) => {
    const { rows } = await lookupOf(kind, nodeId, window, order).execute(on);
    return rows[0]!;
  };
  return isLong(window, nowSeconds) ? withTimeLimit(db, read) : read(db);
}

/** A part of a node's history, as it is told. */
interface PartRow {
  readonly start: number;
  readonly measurements: number;
  readonly answered: number;
  readonly base_latency: number | null;
  readonly versions: readonly string[] | null;
}

/** Measurements of one node in parts of equal length, oldest first. Times are Unix seconds. Throws as `readNodeMetrics` does. */
export const readNodeHistory = (
  db: Kysely<Schema>,
  kind: NodeKind,
  nodeId: string,
  { from, step }: { readonly from: number; readonly step: number },
): Promise<PartRow[]> =>
  withTimeLimit(db, async (on) => {
    const { rows } = await sql<PartRow>`
    select (floor(r.measured_at / ${step}::float8) * ${step}::float8)::float8 as start,
      count(*)::float8 as measurements, count(r.base_latency)::float8 as answered,
      avg(r.base_latency) as base_latency,
      array_agg(distinct r.version order by r.version) filter (where r.version is not null) as versions
    from node_metrics r
    where r.node = (select id from metrics_nodes where kind = ${kind} and node_id = ${nodeId})
      and r.measured_at >= ${from}::float8
    group by 1 order by 1`.execute(on);
    return rows;
  });
