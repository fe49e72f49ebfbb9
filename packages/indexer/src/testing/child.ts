import { openPool } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { startIndexer } from '../indexer.ts';
import { parseIndexerSettings } from '../settings.ts';

/** An indexer in a process of its own, to be killed: `child.ts DATABASE_URL SETTINGS`. Ends when its input does. */
const [databaseUrl, settings] = process.argv.slice(2);
const log = createLogger('indexer', 'silent');
const database = await openPool({ connectionString: databaseUrl! }, { log });
await startIndexer({ pool: database.pool, settings: parseIndexerSettings(JSON.parse(settings!)), log });
process.stdout.write('ready\n');
process.stdin.resume().once('end', () => process.exit(0));
