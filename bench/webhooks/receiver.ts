import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `got`: how many requests were answered. `delays`: how long after their events they came; from then on they are only counted. */
export type Wanted = 'got' | 'delays';

/** A process of its own, so that receiving costs the sender nothing: `/dead...` never answers, anything else at once. */
let got = 0;
const delaysMs: number[] = [];
const seen = new Set<string>();
let isTimed = true;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (request.url!.startsWith('/dead')) return;
    response.writeHead(204).end();
    got++;
    if (!isTimed) return;
    const id = String(request.headers['webhook-id']);
    if (!id.startsWith('evt_') || seen.has(id)) return;
    seen.add(id);
    const { timestamp } = JSON.parse(Buffer.concat(chunks).toString()) as { timestamp: string };
    delaysMs.push(Date.now() - Date.parse(timestamp));
  });
});
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }));
process.on('message', (wanted: Wanted) => {
  if (wanted === 'delays') isTimed = false;
  process.send!(wanted === 'got' ? got : delaysMs);
});
process.on('disconnect', () => process.exit(0));
