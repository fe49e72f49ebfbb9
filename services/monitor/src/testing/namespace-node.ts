// A compute node for namespaces.ts: says that it is there, is told where to listen, and ends with its input.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

interface Order {
  readonly port: number;
  readonly addresses: readonly string[];
  readonly delayMs: number;
}

const lines = createInterface({ input: process.stdin });
lines.on('close', () => process.exit(0));
console.log('here');
const [line] = (await once(lines, 'line')) as [string];
const { port, addresses, delayMs } = JSON.parse(line) as Order;
for (const host of addresses) {
  const server = createServer((request, response) => {
    response.setHeader('server', 'skerry/9.9.9');
    response.statusCode = request.url === '/about/login' ? 401 : 200;
    // A timer may be a millisecond early.
    void setTimeout(delayMs + 1).then(() => response.end('{}'));
  }).listen({ port, host, ipv6Only: true });
  await once(server, 'listening');
}
console.log('serves');
