import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { SetSum } from '@skerry/protocol';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { MESSAGES } from '../../services/core/src/store/message-set.ts';
import { MESSAGE_TABLES } from '../../services/core/src/store/schema.ts';
import type { DataSet } from './data-set.ts';
import { deriveStatements } from './derive.ts';
import { COPIED, listRows, ShapeNumbers } from './rows.ts';

/** What is made anew after the rows are there. */
const INDEXED = [
  'messages',
  'message_tags',
  'totals',
  'aggregates',
  'aggregate_entries',
  'aggregate_covered',
  'amended_posts',
  'instances',
];
const PROGRESS_EVERY = 500_000;

export interface LoadOptions {
  readonly set: DataSet;
  readonly heavyFrom: number;
  /** Without them, indexes stay and follow the rows: quicker for small sets. */
  readonly remakeIndexes: boolean;
  readonly say: (line: string) => void;
}

interface IndexRow {
  name: string;
  definition: string;
  constraint: string | null;
  table: string;
}

async function dropIndexes(client: pg.ClientBase): Promise<IndexRow[]> {
  const { rows } = await client.query<IndexRow>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition,
       pg_get_constraintdef(c.oid) as constraint, i.indrelid::regclass::text as table
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
     where i.indrelid::regclass::text = any($1)`,
    [INDEXED],
  );
  for (const { name, constraint, table } of rows)
    await client.query(
      constraint === null ? `drop index ${name}` : `alter table ${table} drop constraint ${name}`,
    );
  return rows;
}

const remake = ({ name, definition, constraint, table }: IndexRow) =>
  constraint === null ? definition : `alter table ${table} add constraint ${name} ${constraint}`;

/** Empties the node's tables and fills them with the data set. The client is used for this alone. */
export async function loadDataSet(client: pg.ClientBase, options: LoadOptions): Promise<void> {
  const { set, heavyFrom, remakeIndexes, say } = options;
  const startMs = performance.now();
  const tell = (line: string) =>
    say(`${((performance.now() - startMs) / 1000).toFixed(0).padStart(5)} s  ${line}`);
  const run = async (what: string, sql: string) => {
    await client.query(sql);
    if (remakeIndexes) tell(what);
  };
  await client.query(`set statement_timeout = 0; set synchronous_commit = off; set jit = off`);
  await client.query(`set work_mem = '256MB'; set maintenance_work_mem = '1GB'; set temp_buffers = '64MB'`);
  await client.query(`truncate ${MESSAGE_TABLES.join(', ')} restart identity`);
  const indexes = remakeIndexes ? await dropIndexes(client) : [];
  const shapes = new ShapeNumbers();
  const sum = new SetSum();
  const rows = listRows(set, shapes, sum, (written) => {
    if (remakeIndexes && written % PROGRESS_EVERY === 0) tell(`${written} messages`);
  });
  const target = client.query(
    copyFrom(`copy messages (${COPIED.map((name) => `"${name}"`).join(', ')}) from stdin`),
  );
  await pipeline(Readable.from(rows), target);
  await client.query(
    `insert into shapes (digest, type, content_type, paths)
     select encode(sha256(convert_to(key, 'UTF8')), 'hex'), key::jsonb ->> 0, key::jsonb ->> 1,
       array(select jsonb_array_elements_text(key::jsonb -> 2))
     from unnest($1::text[]) with ordinality as k (key, number) order by number`,
    [shapes.keys],
  );
  const { digest, count } = sum.digest();
  await client.query('insert into digests (name, sum, count) values ($1, $2, $3)', [MESSAGES, digest, count]);
  for (const [what, sql] of deriveStatements(heavyFrom)) await run(what, sql);
  for (const index of indexes) await run(`index ${index.name}`, remake(index));
  for (const table of MESSAGE_TABLES) await run(`vacuum ${table}`, `vacuum (analyze) ${table}`);
}

/** Name -> bytes of tables and their indexes, largest first. */
export async function measureTables(client: pg.ClientBase): Promise<{ name: string; bytes: number }[]> {
  const { rows } = await client.query<{ name: string; bytes: string }>(
    `select relname as name, pg_relation_size(oid) as bytes from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'i') and pg_relation_size(oid) > 1000000
     order by 2 desc`,
  );
  return rows.map(({ name, bytes }) => ({ name, bytes: Number(bytes) }));
}
