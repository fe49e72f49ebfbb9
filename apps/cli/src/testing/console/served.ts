import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { SKERRY } from '../shell.ts';

/** Nothing listens on the discard port: the page is served whether or not the core node answers. */
export const NOWHERE = 'http://127.0.0.1:9';

/** `skerry console`, until it is told to end. */
export async function serveConsole() {
  const child = spawn(process.execPath, [SKERRY, 'console', '--json', '--core', NOWHERE], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let text = '';
  for await (const line of createInterface({ input: child.stdout })) {
    text += line;
    if (line === '}') break;
  }
  const told = JSON.parse(text) as { readonly url: string; readonly core: string; readonly build: string };
  const end = async () => {
    child.kill('SIGINT');
    return (await ended)[0];
  };
  return { told, end, [Symbol.asyncDispose]: async () => void (await end()) };
}

/** A core node that serves a console, as far as anybody can tell, and may change what passes. */
export async function serveChanged(url: string) {
  const served = { change: (body: Buffer): Buffer => body };
  const server = createServer(async ({ url: path = '/' }, response) => {
    const inner = await fetch(new URL(path, url), { headers: { accept: 'text/html' } });
    const body = served.change(Buffer.from(await inner.arrayBuffer()));
    response.writeHead(inner.status).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(served, {
    core: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  });
}
