import { createHash } from 'node:crypto';
import { closeSync, createReadStream, createWriteStream, fstatSync, openSync, read } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

// The peer of the storage bench: the least that a Node server does to put a body on the disk and to read it back.
const [path] = process.argv.slice(2);

async function sync(): Promise<void> {
  const handle = await open(path!, 'r+');
  await handle.sync();
  await handle.close();
}

const CHUNK_BYTES = 256 * 1024;
const BUFFERS = 4;

/** The least that a Node server does to give a file: it reads into the same few buffers, and checks and says nothing. */
function sendReusing(response: ServerResponse): void {
  const file = openSync(path!, 'r');
  const sizeBytes = fstatSync(file).size;
  const buffers = Array.from({ length: BUFFERS }, () => Buffer.allocUnsafeSlow(CHUNK_BYTES));
  let [at, turn, going, isReading] = [0, 0, 0, false];
  const next = () => {
    // One is on its way into the socket while the next ones are read.
    if (isReading || going === BUFFERS - 1 || at === sizeBytes) return;
    isReading = true;
    const buffer = buffers[turn++ % BUFFERS]!;
    read(file, buffer, 0, buffer.length, at, (error, bytes) => {
      if (error) throw error;
      isReading = false;
      at += bytes;
      going++;
      response.write(buffer.subarray(0, bytes), () => {
        going--;
        next();
      });
      if (at === sizeBytes) {
        response.end();
        closeSync(file);
      }
      next();
    });
  };
  response.setHeader('content-length', sizeBytes);
  next();
}

const server = createServer(async (request, response) => {
  if (request.url === '/reusing') return sendReusing(response);
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
