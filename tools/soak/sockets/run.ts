import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildNetworkMessage, createSigner, generatePrivateKey } from '@skerry/client';
import { startNode } from '../../../services/core/src/testing/node.ts';
import {
  type Counts,
  channelName,
  type End,
  type FromReaders,
  markOf,
  type Plan,
  type Result,
} from './plan.ts';

const READERS = fileURLToPath(new URL('./readers.ts', import.meta.url));
const PAD = 'x'.repeat(400);
/** Between two looks at the node. */
const LOOK_MS = 5_000;
const MEBIBYTE = 1024 * 1024;

interface SocketsOptions extends Omit<Plan, 'port'> {
  readonly perSecond: number;
  /** Where the node keeps its database. */
  readonly directory: string;
  /** A server instead of the node's own. */
  readonly databaseUrl?: string;
  /** Whether enough was sent, asked once all readers are there; `sent` counts from then on. */
  readonly isEnough: (sent: number, elapsedMs: number) => boolean;
  readonly onProgress?: (line: string) => void;
}

interface SocketsResult extends Result {
  readonly sent: number;
  /** Messages in a second, as it came to be. */
  readonly rate: number;
  /** Readers that the node let go. */
  readonly letGo: number;
  /** Resident memory of the node: when all readers were there, and the most after that. */
  readonly memoryBefore: number;
  readonly memoryMost: number;
}

/** Sends the messages of all channels, each channel's one after another, at one rate. */
class Writer {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 });
  readonly #signer = createSigner(generatePrivateKey());
  readonly #startSeconds = Date.now() / 1000;
  readonly last: number[];
  readonly #busy: Promise<void>[];
  sent = 0;

  constructor(url: string, channels: number) {
    this.#url = url;
    this.last = Array.from({ length: channels }, () => -1);
    this.#busy = Array.from({ length: channels }, () => Promise.resolve());
  }

  /** Sends until it is told to stop. What cannot keep up with the rate comes later, never at once. */
  async run(perSecond: number, isDone: () => boolean): Promise<void> {
    const startMs = performance.now();
    for (let n = 0; !isDone(); n++) {
      const channel = n % this.last.length;
      await this.#busy[channel];
      this.#busy[channel] = this.#send(channel);
      const aheadMs = startMs + (n * 1000) / perSecond - performance.now();
      if (aheadMs > 1) await delay(aheadMs);
    }
    await Promise.all(this.#busy);
    this.#agent.destroy();
  }

  async #send(channel: number): Promise<void> {
    const number = this.last[channel]! + 1;
    const name = channelName(channel);
    const { body } = buildNetworkMessage(
      {
        type: 'POST',
        channel: name,
        content: { type: 'soak', content: { mark: markOf(channel, number) + PAD, tags: [name] } },
        // Later than the one before it, however fast they are.
        time: this.#startSeconds + number / 1000,
      },
      this.#signer,
    );
    const sending = request(`${this.#url}/api/v0/messages`, {
      method: 'POST',
      agent: this.#agent,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    });
    sending.end(body);
    const [response] = await once(sending, 'response');
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 200) throw new Error(`a message was answered ${response.statusCode}`);
    this.last[channel] = number;
    this.sent++;
  }
}

/** Metrics of the node by name, labels left out of the name where there are none. */
async function readMetrics(url: string): Promise<(name: string) => number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const values = new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
  return (name) => values.get(name) ?? 0;
}

/** The process of readers, as it is seen from here. */
class Readers {
  readonly #child;
  readonly #ready = Promise.withResolvers<void>();
  readonly #result = Promise.withResolvers<Result>();
  counts: Counts = { open: 0, frames: 0, gaps: 0, duplicates: 0, ended: 0 };

  constructor(plan: Plan) {
    this.#child = fork(READERS, [JSON.stringify(plan)]);
    this.#child.on('message', (message: FromReaders) => {
      if (message.kind === 'ready') this.#ready.resolve();
      else if (message.kind === 'result') this.#result.resolve(message);
      else this.counts = message;
    });
    this.#child.once('exit', (code) => {
      const error = new Error(`the readers ended with ${code}`);
      this.#ready.reject(error);
      this.#result.reject(error);
    });
    this.#result.promise.catch(() => {});
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  async end(last: readonly number[]): Promise<Result> {
    this.#child.send({ last } satisfies End);
    return this.#result.promise;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

/** Looks at the node now and then, and says what it sees. */
class Watch {
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  memoryBefore = 0;
  memoryMost = 0;
  letGo = 0;

  constructor(url: string, writer: Writer, readers: Readers, { onProgress = () => {} }: SocketsOptions) {
    const startMs = performance.now();
    const look = async () => {
      const metric = await readMetrics(url);
      const memory = metric('process_resident_memory_bytes');
      this.memoryMost = Math.max(this.memoryMost, memory);
      this.letGo = metric('skerry_sockets_let_go_total{kind="messages"}');
      const { open, frames, gaps, duplicates, ended } = readers.counts;
      onProgress(
        `${Math.round((performance.now() - startMs) / 1000)} s: ${open} opened, ${metric('skerry_sockets_open{kind="messages"}')} open, ${writer.sent} messages sent, ${frames} frames read, ${gaps} gaps, ${duplicates} duplicates, ${ended} ended, ${this.letGo} let go, ${Math.round(memory / MEBIBYTE)} MiB, lag p99 ${Math.round(metric('nodejs_eventloop_lag_p99_seconds') * 1000)} ms`,
      );
      return memory;
    };
    this.look = look;
    this.#running = this.#run(look);
  }

  readonly look: () => Promise<number>;

  async #run(look: () => Promise<number>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await delay(LOOK_MS, undefined, { signal: this.#stop.signal }).catch(() => {});
      await look();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

/** Readers come while messages are written; then all read for a while; then it is looked who lacks what. */
export async function runSockets(options: SocketsOptions): Promise<SocketsResult> {
  const { directory, databaseUrl, channels, readers: many, greedy, slow, perSecond, isEnough } = options;
  await using stack = new AsyncDisposableStack();
  const node = await startNode(join(directory, 'node'), databaseUrl, {
    SKERRY_CORE_MAX_SOCKETS: String(many + greedy + slow + 100),
  });
  stack.defer(() => node.end('SIGTERM'));
  const { url } = node;
  const writer = new Writer(url, channels);
  const readers = new Readers({ port: Number(new URL(url).port), channels, readers: many, greedy, slow });
  stack.defer(() => readers.kill());
  const watch = stack.use(new Watch(url, writer, readers, options));
  let isDone = false;
  const writing = writer.run(perSecond, () => isDone);
  writing.catch(() => {});
  await Promise.race([readers.ready, writing]);
  const { sent: sentBefore } = writer;
  const startMs = performance.now();
  watch.memoryBefore = await watch.look();
  while (!isEnough(writer.sent - sentBefore, performance.now() - startMs))
    await Promise.race([delay(50), writing]);
  isDone = true;
  await writing;
  const rate = ((writer.sent - sentBefore) * 1000) / (performance.now() - startMs);
  const result = await readers.end(writer.last);
  await watch.look();
  const { memoryBefore, memoryMost, letGo } = watch;
  return { ...result, sent: writer.sent, rate, letGo, memoryBefore, memoryMost };
}
