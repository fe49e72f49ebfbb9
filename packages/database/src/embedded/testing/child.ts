/**
 * A process to kill: `node child.ts DATA_DIR` starts the embedded database, prints one line of
 * JSON {pid, connection} when it is ready, and goes on until it is killed.
 */
import { createLogger } from '@skerry/kit';
import { startEmbeddedPostgres } from '../postgres.ts';
import { QUICK } from './processes.ts';

const [dataDir = ''] = process.argv.slice(2);
const log = createLogger('child', 'silent');
const server = await startEmbeddedPostgres({ dataDir, log, settings: QUICK });
process.stdout.write(`${JSON.stringify({ pid: server.pid, connection: server.connection })}\n`);
process.stdin.resume();
