import { createLogger } from '@skerry/kit';
import { openPool } from '../../packages/database/src/connect.ts';
import { startIndexer } from '../../packages/indexer/src/indexer.ts';
import { parseIndexerSettings } from '../../packages/indexer/src/settings.ts';

/** An indexer in a process of its own: `child.ts DATABASE_URL SETTINGS`. When its input ends it says what its endpoints cost. */
const [connectionString, settings] = process.argv.slice(2);
const log = createLogger('bench', 'silent');
const { pool } = await openPool({ connectionString: connectionString! }, { log, connectionsMax: 10 });
const indexer = await startIndexer({ pool, settings: parseIndexerSettings(JSON.parse(settings!)), log });
process.stdin.resume().once('end', () => {
  const reports = [...indexer.health().values()].flatMap(({ endpoints }) => endpoints);
  process.stdout.write(`${JSON.stringify(reports)}\n`, () => process.exit(0));
});
