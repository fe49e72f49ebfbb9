import { type MetricsReport, type NodeKind, type NodeRecord, RECORD_NUMBERS } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

export interface StoredReport {
  readonly itemHash: string;
  readonly owner: string;
  readonly report: MetricsReport;
}

/** Every number that a record of either kind has: a column each. */
const NUMBER_COLUMNS = [...new Set([...RECORD_NUMBERS.core, ...RECORD_NUMBERS.compute])];

const KINDS: readonly NodeKind[] = ['core', 'compute'];
/** Rows in one statement. */
const ROWS_MAX = 5_000;

interface Row {
  readonly itemHash: string;
  readonly kind: NodeKind;
  readonly place: number;
  readonly record: NodeRecord;
}

const rowsOf = ({ itemHash, report }: StoredReport): Row[] =>
  KINDS.flatMap((kind) => report[kind].map((record, place) => ({ itemHash, kind, place, record })));

/** Writes the records of messages whose owners are trusted publishers; those of others are left out. */
export async function insertReports(db: Kysely<Schema>, reports: readonly StoredReport[]): Promise<void> {
  const { rows: known } = await sql<{ item_hash: string }>`
    insert into metrics_messages (item_hash, owner)
    select given.item_hash, given.owner
    from unnest(${reports.map((one) => one.itemHash)}::text[], ${reports.map((one) => one.owner)}::text[])
      as given (item_hash, owner)
    join metrics_publishers on address = given.owner
    on conflict (item_hash) do nothing returning item_hash`.execute(db);
  const fresh = new Set(known.map((row) => row.item_hash));
  const rows = reports.filter((one) => fresh.has(one.itemHash)).flatMap(rowsOf);
  for (let from = 0; from < rows.length; from += ROWS_MAX)
    await insertRows(db, rows.slice(from, from + ROWS_MAX));
}

async function insertRows(db: Kysely<Schema>, rows: readonly Row[]): Promise<void> {
  const kinds = rows.map((row) => row.kind);
  const nodeIds = rows.map((row) => row.record.nodeId);
  await sql`
    insert into metrics_nodes (kind, node_id)
    select distinct given.kind, given.node_id from unnest(${kinds}::text[], ${nodeIds}::text[]) as given (kind, node_id)
    where not exists (select from metrics_nodes n where n.kind = given.kind and n.node_id = given.node_id)
    on conflict do nothing`.execute(db);
  const numbers = NUMBER_COLUMNS.map(
    (column) => sql`${rows.map((row) => row.record.numbers[column] ?? null)}::float8[]`,
  );
  const columns = NUMBER_COLUMNS.map((column) => sql.ref(column));
  const given = NUMBER_COLUMNS.map((column) => sql.ref(`given.${column}`));
  await sql`
    insert into node_metrics (node, message, place, measured_at, asn, version, ${sql.join(columns)})
    select n.id, m.id, given.place, given.measured_at, given.asn, given.version, ${sql.join(given)}
    from unnest(
      ${kinds}::text[], ${nodeIds}::text[], ${rows.map((row) => row.itemHash)}::text[],
      ${rows.map((row) => row.place)}::int[], ${rows.map((row) => row.record.measuredAt)}::float8[],
      ${rows.map((row) => row.record.asn)}::bigint[], ${rows.map((row) => row.record.version)}::text[],
      ${sql.join(numbers)}
    ) as given (kind, node_id, item_hash, place, measured_at, asn, version, ${sql.join(columns)})
    join metrics_nodes n on n.kind = given.kind and n.node_id = given.node_id
    join metrics_messages m on m.item_hash = given.item_hash`.execute(db);
}

/** Takes the records of messages out again: those of trusted publishers, since others' are not there. */
export async function deleteReports(db: Kysely<Schema>, reports: readonly StoredReport[]): Promise<void> {
  const { rows: kept } = await sql<{ item_hash: string }>`
    select item_hash from metrics_messages
    where item_hash = any(${reports.map((one) => one.itemHash)}::text[])`.execute(db);
  const known = new Set(kept.map((row) => row.item_hash));
  const rows = reports.filter((one) => known.has(one.itemHash)).flatMap(rowsOf);
  for (let from = 0; from < rows.length; from += ROWS_MAX) {
    const some = rows.slice(from, from + ROWS_MAX);
    await sql`
      delete from node_metrics r
      using unnest(
          ${some.map((row) => row.kind)}::text[], ${some.map((row) => row.record.nodeId)}::text[],
          ${some.map((row) => row.itemHash)}::text[], ${some.map((row) => row.place)}::int[],
          ${some.map((row) => row.record.measuredAt)}::float8[])
          as given (kind, node_id, item_hash, place, measured_at)
        join metrics_nodes n on n.kind = given.kind and n.node_id = given.node_id
        join metrics_messages m on m.item_hash = given.item_hash
      where r.node = n.id and r.message = m.id and r.measured_at = given.measured_at and r.place = given.place`.execute(
      db,
    );
  }
  await sql`
    delete from metrics_messages
    where item_hash = any(${reports.map((one) => one.itemHash)}::text[])`.execute(db);
}
