/**
 * A process to kill: `node testing-child.ts DATA_DIR [PACKAGE_DIR]` starts the embedded database, prints one line of
 * JSON {pid, connection} when it is ready, and goes on until it is killed.
 */
import { createLogger } from '@skerry/kit';
import { startEmbeddedPostgres } from './postgres.ts';

const [dataDir = '', packageDir] = process.argv.slice(2);
const server = await startEmbeddedPostgres({ dataDir, packageDir, log: createLogger('child', 'silent') });
process.stdout.write(`${JSON.stringify({ pid: server.pid, connection: server.connection })}\n`);
process.stdin.resume();
