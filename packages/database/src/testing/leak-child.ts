/**
 * A test process to end: `node leak-child.ts WAY` makes a test database on a server of its own, prints one line
 * of JSON {url} and then ends: WAY is `return` (nothing left to do), `exit` (process.exit) or `hang` (waits to be killed).
 */
import { createLogger } from '@skerry/kit';
import { createTestDatabase } from './database.ts';

const database = await createTestDatabase({ log: createLogger('child', 'silent') });
process.stdout.write(`${JSON.stringify({ url: database.url })}\n`);
const way = process.argv[2];
if (way === 'exit') process.exit(0);
if (way === 'hang') process.stdin.resume();
else await database[Symbol.asyncDispose]();
