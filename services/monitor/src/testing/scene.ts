import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../follow-plan.ts';
import type { MeasuredNode } from '../node-list.ts';
import type { ProbeOptions } from '../probe/measure.ts';

/** What the tests of the monitor use: nodes on this machine, and a clock that runs as fast as the work. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface TestNode extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** `METHOD path` of each request, in order, with how many were being answered at the time. */
  readonly requests: { readonly path: string; readonly running: number; readonly address: string }[];
}

export async function startNode(
  handler: Handler,
  options: { host?: string; port?: number; tls?: { key: string; cert: string } } = {},
): Promise<TestNode> {
  const { host = '127.0.0.1', port = 0, tls } = options;
  const requests: TestNode['requests'] = [];
  let running = 0;
  const serve: Handler = (request, response) => {
    requests.push({ path: request.url ?? '', running, address: request.socket.localAddress ?? '' });
    running++;
    response.on('close', () => running--);
    handler(request, response);
  };
  const server: Server = tls ? createTlsServer(tls, serve) : createServer(serve);
  await once(server.listen({ host, port, ipv6Only: host === '::1' }), 'listening');
  const at = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    url: `${tls ? 'https' : 'http'}://${name}:${at.port}/`,
    port: at.port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const PORT_TRIES = 20;

/** Two nodes at one port: the first on IPv4, the second on IPv6, where somebody else may have a port that is free on IPv4. */
export async function startPair(handler: Handler): Promise<[TestNode, TestNode]> {
  for (let tries = 1; ; tries++) {
    const fourth = await startNode(handler);
    try {
      return [fourth, await startNode(handler, { host: '::1', port: fourth.port })];
    } catch (error) {
      await fourth[Symbol.asyncDispose]();
      if (tries === PORT_TRIES) throw error;
    }
  }
}

export const nodeAt = (kind: MeasuredNode['kind'], url: string, digit = 'a'): MeasuredNode => ({
  kind,
  nodeId: digit.repeat(64),
  url,
});

export const probeOptionsOf = (own: Partial<ProbeOptions> = {}): ProbeOptions => ({
  mayReach: () => true,
  findSystem: () => ({ asn: 64_512, name: 'Test' }),
  aggregateOwner: `0x${'1'.repeat(40)}`,
  referenceFile: 'f'.repeat(64),
  diagnosticVm: '123456789abc'.padEnd(64, '0'),
  computeFamily: 0,
  software: ['skerry'],
  ping: async () => 0.001,
  pause: async () => true,
  now: () => 1_780_272_000_500,
  signal: new AbortController().signal,
  ...own,
});

const QUIET_TURNS = 5;

/** A clock that jumps to the next moment that somebody waits for, as soon as nothing else is to be done. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #working = 0;
  readonly #waiting: { timeMs: number; readonly wake: (isTime: boolean) => void }[] = [];

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  waitUntil(timeMs: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const entry = { timeMs, wake: resolve };
      this.#waiting.push(entry);
      signal.addEventListener('abort', () => {
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(false);
      });
    });
  }

  /** Somebody sets the clock. What is waited for comes as soon as it would have: timers know nothing of it. */
  set(byMs: number): void {
    this.#nowMs += byMs;
    for (const entry of this.#waiting) entry.timeMs += byMs;
  }

  /** The same object, with the clock standing still while one of its methods runs. */
  stopDuring<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== 'function') return member;
        return async (...all: unknown[]) => {
          this.#working++;
          try {
            return await member.apply(target, all);
          } finally {
            this.#working--;
          }
        };
      },
    });
  }

  /** Until nobody has anything left to do but wait for the clock. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#working > 0 ? 0 : quiet + 1;
    }
  }

  /** Moves to the earliest moment that is waited for; false if there is none. */
  jump(): boolean {
    const [next] = this.#waiting.sort((a, b) => a.timeMs - b.timeMs);
    if (!next) return false;
    this.#waiting.shift();
    this.#nowMs = Math.max(this.#nowMs, next.timeMs);
    next.wake(true);
    return true;
  }

  /** Runs until `work` is over. */
  async drive<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    void work
      .finally(() => {
        isOver = true;
      })
      .catch(() => {});
    while (!isOver) {
      await this.settle();
      if (!isOver) this.jump();
    }
    return work;
  }
}
