import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

// The peer of the storage bench: the least that a Node server does to put a body on the disk and to read it back.
const [path] = process.argv.slice(2);

async function sync(): Promise<void> {
  const handle = await open(path!, 'r+');
  await handle.sync();
  await handle.close();
}

const server = createServer(async (request, response) => {
  if (request.method === 'GET') return void createReadStream(path!).pipe(response);
  if (request.url === '/hash') {
    const digest = createHash('sha256');
    request.on('data', (chunk: Buffer) => digest.update(chunk));
  }
  await pipeline(request, createWriteStream(path!));
  await sync();
  response.end('{}');
});
server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => {
  process.send!({ urls: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`] });
});
process.once('disconnect', () => process.exit(0));
