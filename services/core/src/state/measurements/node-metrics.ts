import { type NodeKind, type NumberField, RECORD_NUMBERS } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

export interface MetricsWindow {
  /** Unix seconds, inclusive. */
  readonly from: number;
  /** Unix seconds, inclusive; Infinity for no end. */
  readonly to: number;
}

export type MetricsRow = {
  readonly item_hash: string;
  readonly measured_at: number;
  readonly asn: number | null;
  readonly version: string | null;
} & Readonly<Partial<Record<NumberField, number | null>>>;

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
export const columnsOf = (kind: NodeKind) =>
  ['item_hash', 'measured_at', ...RECORD_NUMBERS[kind], 'asn', 'version'] as const;

/** Measurements of one node in order of time. @param limit rows at most */
export async function readNodeMetrics(
  db: Kysely<Schema>,
  kind: NodeKind,
  nodeId: string,
  window: MetricsWindow,
  isNewestFirst: boolean,
  limit: number,
): Promise<MetricsRow[]> {
  const direction = isNewestFirst ? sql`desc` : sql`asc`;
  const numbers = RECORD_NUMBERS[kind].map((column) => sql.ref(`r.${column}`));
  const { rows } = await sql<MetricsRow>`
    select m.item_hash, r.measured_at, ${sql.join(numbers)}, r.asn, r.version
    from node_metrics r join metrics_messages m on m.id = r.message
    where r.node = (select id from metrics_nodes where kind = ${kind} and node_id = ${nodeId})
      and r.measured_at >= ${window.from}::float8 and r.measured_at <= ${window.to}::float8
    order by r.measured_at ${direction}, m.item_hash, r.place limit ${limit}`.execute(db);
  return rows;
}

/** A part of a node's history, as it is told. */
interface PartRow {
  readonly start: number;
  readonly measurements: number;
  readonly answered: number;
  readonly base_latency: number | null;
  readonly versions: readonly string[] | null;
}

/** Measurements of one node in parts of equal length, oldest first. Times are Unix seconds. */
export async function readNodeHistory(
  db: Kysely<Schema>,
  kind: NodeKind,
  nodeId: string,
  { from, step }: { readonly from: number; readonly step: number },
): Promise<PartRow[]> {
  const { rows } = await sql<PartRow>`
    select (floor(r.measured_at / ${step}::float8) * ${step}::float8)::float8 as start,
      count(*)::float8 as measurements, count(r.base_latency)::float8 as answered,
      avg(r.base_latency) as base_latency,
      array_agg(distinct r.version order by r.version) filter (where r.version is not null) as versions
    from node_metrics r
    where r.node = (select id from metrics_nodes where kind = ${kind} and node_id = ${nodeId})
      and r.measured_at >= ${from}::float8
    group by 1 order by 1`.execute(db);
  return rows;
}
