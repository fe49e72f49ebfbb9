// The least that a server can do between HTTP and the database: it checks nothing, keeps each body under its hash and gives it again.
// Bodies that come while others are written are written together. What the core node takes beside it is the price of all it does.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import pg from 'pg';

/** As many as the core node has. */
const CONNECTIONS = 10;
const pool = new pg.Pool({ connectionString: process.argv[2]!, max: CONNECTIONS });
await pool.query('create table bare (item_hash text primary key, body text not null)');

interface Waiting {
  readonly hash: string;
  readonly body: string;
  readonly done: PromiseWithResolvers<void>;
}

let waiting: Waiting[] = [];
let isWriting = false;

async function write(): Promise<void> {
  if (isWriting) return;
  isWriting = true;
  while (waiting.length > 0) {
    const batch = waiting;
    waiting = [];
    try {
      await pool.query({
        name: 'write',
        text: 'insert into bare select * from unnest($1::text[], $2::text[]) on conflict do nothing',
        values: [batch.map(({ hash }) => hash), batch.map(({ body }) => body)],
      });
      for (const { done } of batch) done.resolve();
    } catch (error) {
      for (const { done } of batch) done.reject(error);
    }
  }
  isWriting = false;
}

async function take(request: IncomingMessage): Promise<unknown> {
  const body = await text(request);
  JSON.parse(body);
  const hash = createHash('sha256').update(body).digest('hex');
  const done = Promise.withResolvers<void>();
  waiting.push({ hash, body, done });
  void write();
  await done.promise;
  return { item_hash: hash };
}

async function give(hash: string): Promise<unknown> {
  const { rows } = await pool.query<{ item_hash: string; body: string }>({
    name: 'read',
    text: 'select * from bare where item_hash = $1',
    values: [hash],
  });
  const [row] = rows;
  if (!row) throw new Error(`there is no ${hash}`);
  return { item_hash: row.item_hash, message: JSON.parse(row.body) };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const found =
      request.method === 'POST' ? await take(request) : await give(request.url!.split('/').at(-1)!);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(found));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
}

const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit());
