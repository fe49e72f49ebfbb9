import { setTimeout as delay } from 'node:timers/promises';
import {
  CoreClient,
  createSigner,
  generatePrivateKey,
  request,
  type Signer,
  signMessage,
} from '@skerry/client';
import {
  type Receiver,
  SECRET,
  startReceiver,
} from '../../../services/core/src/notify/webhooks/testing/setup.ts';

const WRITERS_PER_NODE = 4;
/** Between two messages of a writer. */
const PACE_MS = 40;
/** Between two tries of a writer that was refused. */
const PAUSE_MS = 100;
const POST_TIMEOUT_MS = 30_000;
const CHANNEL = 'failover';

/** A message that a core process acknowledged. */
export interface Acknowledged {
  readonly hash: string;
  readonly node: number;
  readonly atMs: number;
}

/** What writers saw. */
export class Ledger {
  readonly acknowledged: Acknowledged[] = [];
  /** Answers other than success, and connections that broke, by what was said. */
  readonly refused = new Map<string, number>();

  #awaySinceMs = -Infinity;

  /** Whether somebody was lately refused for want of the database, and nothing acknowledged since. */
  get isAway(): boolean {
    return this.#awaySinceMs > (this.acknowledged.at(-1)?.atMs ?? 0);
  }

  refuse(said: string): void {
    if (said.includes('DATABASE_UNAVAILABLE')) this.#awaySinceMs = performance.now();
    this.refused.set(said, (this.refused.get(said) ?? 0) + 1);
  }

  /** The longest time in which a node acknowledged nothing, in milliseconds. */
  longestGap(node: number, fromMs: number, toMs: number): number {
    const times = this.acknowledged
      .filter((one) => one.node === node && one.atMs >= fromMs && one.atMs <= toMs)
      .map(({ atMs }) => atMs);
    return Math.max(...[...times, toMs].map((at, index) => at - (times[index - 1] ?? fromMs)));
  }
}

/** @returns what was said instead of an acknowledgement; nothing where it was acknowledged */
export async function postMessage(url: string, body: string): Promise<string> {
  try {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(POST_TIMEOUT_MS);
    const answer = await fetch(`${url}/api/v0/messages`, { method: 'POST', headers, body, signal });
    const text = await answer.text();
    if (answer.ok) return '';
    const { code } = JSON.parse(text) as { code: string };
    return `${answer.status} ${code}${answer.headers.has('retry-after') ? ', with Retry-After' : ''}`;
  } catch (error) {
    return (error as Error).name === 'TimeoutError' ? 'no answer' : 'connection broke';
  }
}

/** Sends message after message, each until it is acknowledged. */
async function write(
  urlOf: (node: number) => string,
  node: number,
  ledger: Ledger,
  signal: AbortSignal,
): Promise<void> {
  const signer = createSigner(generatePrivateKey());
  for (let n = 0; !signal.aborted; n++) {
    const draft = { type: 'POST', channel: CHANNEL, content: { type: 'note', content: { n } } };
    const { body, itemHash } = signMessage(draft, signer);
    while (!signal.aborted) {
      const said = await postMessage(urlOf(node), body);
      if (said === '') {
        ledger.acknowledged.push({ hash: itemHash, node, atMs: performance.now() });
        break;
      }
      ledger.refuse(said);
      await delay(PAUSE_MS);
    }
    await delay(PACE_MS);
  }
}

/** @returns when all writers have ended, after the signal */
export const startWriters = (
  urlOf: (node: number) => string,
  nodes: number,
  ledger: Ledger,
  signal: AbortSignal,
): Promise<unknown> =>
  Promise.all(
    Array.from({ length: nodes * WRITERS_PER_NODE }, (_, n) => write(urlOf, n % nodes, ledger, signal)),
  );

const HEALTH_MS = 500;
const HEALTH_TIMEOUT_MS = 5_000;

/** What `/health` of a process said while writers of that process were refused for want of the database, and otherwise; by status. */
export async function watchHealth(
  url: string,
  isAway: () => boolean,
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const said = new Map<string, number>();
  while (!signal.aborted) {
    const wasAway = isAway();
    const limit = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const status = await fetch(`${url}/health`, { signal: limit }).then(
      async (answer) => ((await answer.json()) as { status: string }).status,
      () => 'no answer',
    );
    const key = `${status}${wasAway && isAway() ? ' while the database was away' : ''}`;
    said.set(key, (said.get(key) ?? 0) + 1);
    await delay(HEALTH_MS);
  }
  return said;
}

/** Follows the events of one process, also when it is another one at the same address. */
export class Stream {
  readonly cursors: number[] = [];

  async follow(url: string, cursor: string, signal: AbortSignal): Promise<void> {
    for await (const event of new CoreClient({ url }).events({ cursor, signal }))
      this.cursors.push(Number(event.cursor));
  }

  /** Cursors that did not come after the one before. */
  get misplaced(): number {
    return this.cursors.filter((cursor, index) => index > 0 && cursor <= this.cursors[index - 1]!).length;
  }
}

/** A webhook for every message, and what came to it. */
export class Webhook implements AsyncDisposable {
  readonly #receiver: Receiver;

  private constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  static async open(url: string, signer: Signer): Promise<Webhook> {
    const receiver = await startReceiver();
    const content = { url: receiver.url, events: ['message.new'], secret: SECRET };
    const { body } = signMessage({ type: 'WEBHOOK', content }, signer);
    await request(`${url}/api/v0/webhooks`, { method: 'POST', body });
    return new Webhook(receiver);
  }

  /** Ids under which each event came, by its cursor. */
  idsByCursor(): Map<number, Set<string>> {
    const ids = new Map<number, Set<string>>();
    for (const { id, body } of this.#receiver.received) {
      const { cursor } = (JSON.parse(body) as { data: { cursor: string } }).data;
      ids.set(Number(cursor), (ids.get(Number(cursor)) ?? new Set()).add(id));
    }
    return ids;
  }

  get attempts(): number {
    return this.#receiver.received.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
  }
}
