import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createLogger } from '@skerry/kit';
import { Kysely, PostgresDialect } from 'kysely';
import { type Database, openDatabase } from '../../packages/database/src/connect.ts';
import { migrate } from '../../packages/database/src/migrate.ts';
import { countAll, HEAVY } from '../../services/core/src/state/lists/totals.ts';
import { MIGRATIONS } from '../../services/core/src/store/directory.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { type DataSet, hashOf } from '../data-set/data-set.ts';
import { createDice } from '../data-set/dice.ts';
import { loadDataSet, measureTables } from '../data-set/load.ts';
import { startDurableServer } from '../measure/durable-server.ts';
import { type Figures, tell } from '../measure/figures.ts';
import type { Query } from '../measure/queries.ts';
import { type Bench, benchLists, benchOthers, benchReaders, benchThree } from './cases.ts';
import { benchHttp } from './http.ts';
import { listProperties } from './values.ts';

const SEED = 1;
const GIB = 1024 ** 3;
/** Tables and indexes whose sizes are said, the largest first. */
const SIZES_TOLD = 30;

async function prepare(figures: Figures, { pool, kysely }: Database<Schema>, set: DataSet): Promise<void> {
  const client = await pool.connect();
  try {
    // What is there already is of the same seed: its last message says how many there are.
    const { rows } = await client.query('select from messages where item_hash = $1', [
      hashOf(set.dice, set.count - 1),
    ]);
    const { rows: more } = await client.query('select from messages where item_hash = $1', [
      hashOf(set.dice, set.count),
    ]);
    if (rows.length === 1 && more.length === 0 && (await countAll(kysely)) > 0)
      tell('the data set is there already');
    else {
      await loadDataSet(client, { set, heavyFrom: HEAVY, remakeIndexes: true, say: tell });
    }
    const sizes = await measureTables(client);
    const sum = sizes.reduce((total, { bytes }) => total + bytes, 0);
    figures.group(`${set.count.toLocaleString('en')} messages`);
    figures.add('size in the database', 'GiB', sum / GIB);
    for (const { name, bytes } of sizes.slice(0, SIZES_TOLD))
      tell(`  ${name.padEnd(32)} ${(bytes / GIB).toFixed(2).padStart(7)} GiB`);
  } finally {
    client.release(true);
  }
}

/**
 * Lists, totals and single reads over a data set of any size: times of every documented filter, alone and in pairs, and
 * whether a plan reads a whole table.
 */
export async function benchQuery(figures: Figures, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'database-url': { type: 'string' },
      messages: { type: 'string', default: '100000' },
      /** `three`: three frequent values at a time, and nothing else. */
      only: { type: 'string' },
    },
  });
  const set: DataSet = { dice: createDice(SEED), count: Number(values.messages) };
  const log = createLogger('bench', 'error');
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  try {
    await using stack = new AsyncDisposableStack();
    const databaseUrl = values['database-url'] ?? stack.use(await startDurableServer(log)).url;
    const database = stack.use(
      await openDatabase<Schema>({ databaseUrl, dataDir: join(directory, 'postgres'), log }),
    );
    await migrate({ pool: database.pool, directory: MIGRATIONS, log });
    const { rows } = await database.pool.query<{ version: string }>('select version() as version');
    tell(rows[0]!.version.split(',')[0]!);
    await prepare(figures, database, set);
    const recorded: Query[] = [];
    const db = new Kysely<Schema>({
      dialect: new PostgresDialect({ pool: database.pool }),
      log: ({ query }) => {
        recorded.push({ sql: query.sql, parameters: query.parameters });
        if (recorded.length > 1_000) recorded.length = 0;
      },
    });
    const bench: Bench = { figures, db, pool: database.pool, set, recorded };
    if (values.only === 'three') return await benchThree(bench, await listProperties(db, set));
    await benchLists(bench);
    await benchOthers(bench);
    await benchReaders(bench);
    await benchHttp(figures, { pool: database.pool, databaseUrl }, set, directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
