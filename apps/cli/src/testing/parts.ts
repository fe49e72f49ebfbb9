import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { PORTS } from '@skerry/devnet';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, beforeEnd, endProcess } from '@skerry/kit/testing/processes';
import { SKERRY } from './shell.ts';

/** Parts of a network as processes of their own, for end-to-end tests that need more than one of each. */

type Environment = Readonly<Record<string, string>>;

const stopper = (child: ChildProcess): AsyncDisposable => ({
  [Symbol.asyncDispose]: () => endProcess(child, 'SIGTERM'),
});

/** `skerry up` with ports of the system's choice; where each door is, by name. */
export async function startUp(
  environment: Environment,
  args: readonly string[],
): Promise<{ urls: Readonly<Record<string, string>>; pid: number } & AsyncDisposable> {
  const ports = Object.values(PORTS).flatMap(({ flag }) => [flag, '0']);
  const child = spawn(process.execPath, [SKERRY, 'up', '--quiet', '--json', ...ports, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  const heard = hear(child, ['stderr']);
  const { urls } = await beforeEnd(readRecord(child.stdout), child, 'skerry up', heard);
  return { urls, pid: child.pid!, ...stopper(child) };
}

/** The record that a command prints over several lines and then goes on. */
async function readRecord(stream: Readable): Promise<{ urls: Record<string, string> }> {
  let text = '';
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (text.endsWith('\n}\n')) return JSON.parse(text);
  }
  // It ended before: how it ended says why.
  return new Promise(() => {});
}

/** One daemon; resolves when it serves. */
export async function startDaemon(
  name: string,
  environment: Environment,
): Promise<{ url: string; pid: number } & AsyncDisposable> {
  const child = spawn(process.execPath, [SKERRY, name], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, SKERRY_LOG_LEVEL: 'warn', ...environment },
  });
  const { urls } = await awaitReady<{ urls: string[] }>(child, `skerry ${name}`, hear(child));
  return { url: urls[0] ?? '', pid: child.pid!, ...stopper(child) };
}

/** What the diagnostic program of a compute node answers; a node that runs no programs says 503. */
const DIAGNOSTICS = /^\/(?:vm\/|status\/check\/fastapi)/;

/**
 * Stands before a compute node and passes everything on, the diagnostic program after a while. Where the node runs no programs,
 * it is one. Whoever comes before the node is known waits for it.
 */
export async function startFront(delayMs: number) {
  const target = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const answer = async () => {
      // A timer may be a millisecond early.
      if (path.startsWith('/vm/')) await setTimeout(delayMs + 1);
      const inner = await fetch(`${await target.promise}${path}`, { redirect: 'manual' });
      const isDiagnostic = inner.status === 503 && DIAGNOSTICS.test(path);
      response.writeHead(isDiagnostic ? 200 : inner.status, {
        server: inner.headers.get('server') ?? '',
        'content-type': inner.headers.get('content-type') ?? '',
      });
      response.end(Buffer.from(await inner.arrayBuffer()));
    };
    answer().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passOnTo: target.resolve,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
