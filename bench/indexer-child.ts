import { createLogger } from '@skerry/kit';
import { openPool } from '../services/core/src/db/connect.ts';
import { startIndexer } from '../services/core/src/indexer/indexer.ts';
import { parseIndexerSettings } from '../services/core/src/indexer/settings.ts';

/** An indexer in a process of its own: `indexer-child.ts DATABASE_URL SETTINGS`. When its input ends it says what its endpoints cost. */
const [connectionString, settings] = process.argv.slice(2);
const log = createLogger('bench', 'silent');
const { pool } = await openPool({ connectionString: connectionString! }, { log, connectionsMax: 10 });
const indexer = await startIndexer({ pool, settings: parseIndexerSettings(JSON.parse(settings!)), log });
process.stdin.resume().once('end', () => {
  const reports = [...indexer.standings().values()].flatMap(({ endpoints }) => endpoints);
  process.stdout.write(`${JSON.stringify(reports)}\n`, () => process.exit(0));
});
