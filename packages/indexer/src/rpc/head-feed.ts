import { backoffMs, type Logger, pause } from '@skerry/kit';
import { type Fields, fieldsOf } from '@skerry/protocol';

/** A notification of a header is about 2 kB. */
const MESSAGE_MAX_CHARS = 64 * 1024;
const RECONNECT_BASE_MS = 500;
const RECONNECT_MAX_MS = 60_000;
const QUANTITY = /^0x[0-9a-f]{1,12}$/i;

/** A connection until its end. */
interface Open {
  subscription: string | undefined;
  /** Does not wait for the other side, which may be gone without a word. */
  readonly end: () => void;
}

export interface HeadFeedOptions {
  /** WebSocket addresses; they may hold keys. */
  readonly urls: readonly string[];
  readonly timeoutMs: number;
  readonly network: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** What a server of subscriptions says, or undefined for anything else. Never throws. */
export function readHeadMessage(
  data: unknown,
): { subscribed: string } | { subscription: string; number: number } | undefined {
  if (typeof data !== 'string' || data.length > MESSAGE_MAX_CHARS) return undefined;
  let message: Fields;
  try {
    message = fieldsOf(JSON.parse(data));
  } catch {
    return undefined;
  }
  if (message.id === 1 && typeof message.result === 'string') return { subscribed: message.result };
  const { subscription, result } = fieldsOf(message.params);
  const { number } = fieldsOf(result);
  if (message.method !== 'eth_subscription' || typeof subscription !== 'string') return undefined;
  return typeof number === 'string' && QUANTITY.test(number)
    ? { subscription, number: Number(number) }
    : undefined;
}

/**
 * Tells when there is a new block, by `eth_subscribe` over WebSocket. What it tells is a reason to look and no more:
 * blocks are read, compared and believed as they are without it.
 */
export class HeadFeed {
  /** The highest block that was told; -1 before the first. */
  told = -1;
  readonly #options: HeadFeedOptions;
  readonly #open = new Set<Open>();
  #news = new AbortController();

  constructor(options: HeadFeedOptions) {
    this.#options = options;
  }

  /** Whether some subscription stands. */
  get isLive(): boolean {
    return [...this.#open].some(({ subscription }) => subscription !== undefined);
  }

  /** Keeps the subscriptions up until the signal ends. */
  async run(): Promise<void> {
    await Promise.all(this.#options.urls.map((url) => this.#keep(url)));
  }

  /** Resolves when something was told since the last wait, at the latest after `ms`. */
  async wait(ms: number): Promise<void> {
    await pause(ms, AbortSignal.any([this.#news.signal, this.#options.signal]));
    if (this.#news.signal.aborted) this.#news = new AbortController();
  }

  /** Ends the wait: there is another reason to look. */
  ring(): void {
    this.#news.abort();
  }

  /** The chain went on and nothing was told: whoever stood silent is asked anew. */
  distrust(): void {
    for (const { end } of this.#open) end();
  }

  async #keep(url: string): Promise<void> {
    const { signal, log, network } = this.#options;
    const endpoint = new URL(url).host;
    for (let failures = 0; !signal.aborted; ) {
      const stood = await this.#subscribe(url, () => {
        if (failures > 0) log.info({ network, endpoint }, 'a subscription stands again');
      });
      if (signal.aborted) return;
      failures = stood ? 1 : failures + 1;
      if (failures === 1) log.warn({ network, endpoint }, 'a subscription ended; polling the head');
      await pause(backoffMs(failures, RECONNECT_BASE_MS, RECONNECT_MAX_MS), signal);
    }
  }

  /** One connection until it ends; whether it brought a subscription. */
  async #subscribe(url: string, onStands: () => void): Promise<boolean> {
    const { signal, timeoutMs } = this.#options;
    const socket = new WebSocket(url);
    const ended = Promise.withResolvers<void>();
    const end = () => {
      socket.close();
      ended.resolve();
    };
    const state: Open = { subscription: undefined, end };
    const deadline = setTimeout(end, timeoutMs);
    signal.addEventListener('abort', end, { once: true });
    socket.addEventListener('open', () =>
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] })),
    );
    socket.addEventListener('message', ({ data }) => {
      const message = readHeadMessage(data);
      if (message === undefined) return;
      if ('subscribed' in message) {
        clearTimeout(deadline);
        state.subscription = message.subscribed;
        onStands();
        // What came before is not told any more.
        this.ring();
      } else if (message.subscription === state.subscription) this.#tell(message.number);
    });
    socket.addEventListener('close', () => ended.resolve());
    socket.addEventListener('error', () => ended.resolve());
    this.#open.add(state);
    await ended.promise;
    clearTimeout(deadline);
    signal.removeEventListener('abort', end);
    this.#open.delete(state);
    return state.subscription !== undefined;
  }

  /** Also of a block that is not higher: a reorganisation may be told so. */
  #tell(number: number): void {
    this.told = Math.max(this.told, number);
    this.ring();
  }
}
