import { anything, fields, maybe, number, type Read, text } from '../pure/read.ts';
import { EventText, Rate, Ring } from '../pure/stream.ts';

/**
 * Follows a core node's events beside the page: ten thousand a second are read here, and the page is told what it shows of them,
 * a few times a second.
 */

const readEvent = fields({
  cursor: text,
  kind: text,
  time_ms: number,
  data: anything,
  ...{ cause: maybe(text), shared: maybe(text) },
});
const readMachine = fields({ instance_id: text });
const readHeader = fields({
  item_hash: text,
  type: text,
  sender: text,
  channel: maybe(text),
  timestamp: number,
  content_type: maybe(text),
});
export type LiveMessage = Read<typeof readHeader> & {
  readonly number: number;
  readonly atMs: number;
  /** Unix seconds. */
  readonly time: number;
  /** What proves it; null where it is not told, or too long to be kept for every row. */
  readonly shared: string | null;
};

/** A machine that was changed, and by what, as the core node tells it. */
export interface LiveChange {
  readonly number: number;
  readonly atMs: number;
  /** The machine after the change. */
  readonly data: unknown;
  /** The message that changed it; null where it was not one alone. */
  readonly cause: string | null;
  /** What proves that. */
  readonly shared: string | null;
}

export interface LiveState {
  readonly status: 'connecting' | 'live' | 'lost';
  /** Why the connection was lost. */
  readonly why: string | null;
  /** Messages that fit the filter, since it was set. */
  readonly total: number;
  /** Messages in each of the last seconds, whatever the filter, oldest first. */
  readonly perSecond: readonly number[];
  /** How old the newest event was when it came, ms; null before the first. */
  readonly lagMs: number | null;
  /** The rows that were asked for, newest first. */
  readonly rows: readonly LiveMessage[];
  /** The oldest number that is still kept. */
  readonly first: number;
  /** The newest changes of the machine that was asked for, newest first. */
  readonly changes: readonly LiveChange[];
}

/** What the page asks for. */
export interface LiveWish {
  readonly url: string;
  readonly cursor: string;
  /** Rows from this number down; null: the newest. */
  readonly from: number | null;
  readonly size: number;
  readonly filter: LiveFilter;
  /** The machine whose changes are wanted; empty: none. */
  readonly machine: string;
}

/** Empty: all. */
export interface LiveFilter {
  readonly type: string;
  readonly channel: string;
  readonly sender: string;
}

const KEPT = 5_000;
/** Of all machines, and how many of one are told. */
const CHANGES_KEPT = 300;
const CHANGES_TOLD = 20;
/** Of each row that is kept. */
const BODY_CHARS_MAX = 3_000;
const RATE_SECONDS = 61;
const TELL_MS = 200;
/** A core node says each 15 s that it is there, and looks once a second whether to: who says nothing for longer is not heard. */
const SILENCE_MS = 18_000;
const RETRY_BASE_MS = 200;
const RETRY_MAX_MS = 10_000;

let ring = new Ring<LiveMessage>(KEPT);
const changes = new Ring<LiveChange & { readonly machine: string }>(CHANGES_KEPT);
const rate = new Rate(RATE_SECONDS);
let wish: LiveWish | undefined;
let status: LiveState['status'] = 'connecting';
let why: string | null = null;
let lagMs: number | null = null;
let cursor = '';

const isWanted = (header: Read<typeof readHeader>, { type, channel, sender }: LiveFilter) =>
  (type === '' || type === header.type) &&
  (channel === '' || channel === header.channel) &&
  (sender === '' || sender.toLowerCase() === header.sender.toLowerCase());

function take(data: string): void {
  const event = readEvent(JSON.parse(data), 'the event');
  ({ cursor } = event);
  const nowMs = Date.now();
  lagMs = Math.max(0, nowMs - event.time_ms);
  if (event.kind === 'instance') {
    const { instance_id: machine } = readMachine(event.data, 'the machine');
    const { data, cause, shared, time_ms: atMs } = event;
    changes.push({ machine, data, cause, shared, atMs, number: changes.total });
  }
  if (event.kind !== 'message') return;
  const header = readHeader(event.data, 'the message');
  rate.add(nowMs);
  if (!isWanted(header, wish!.filter)) return;
  const shared = event.shared !== null && event.shared.length <= BODY_CHARS_MAX ? event.shared : null;
  const { timestamp: time } = header;
  ring.push({ ...header, time, shared, number: ring.total, atMs: event.time_ms });
}

function takeAll(texts: readonly string[]): void {
  for (const one of texts) {
    try {
      take(one);
    } catch {
      // An event in another form is a newer node's, or a stranger's: those after it count all the same.
    }
  }
}

async function readConnection({ url }: LiveWish): Promise<void> {
  const silence = new AbortController();
  let watchdog = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const asked = `${url}/api/v0/events?kinds=message,instance&bodies=shared&cursor=${encodeURIComponent(cursor)}`;
    const headers = { accept: 'text/event-stream' };
    const response = await fetch(asked, { headers, signal: silence.signal, credentials: 'omit' }).catch(
      () => {
        throw new Error('the core node does not answer');
      },
    );
    if (!response.ok || !response.body) throw new Error(`the core node answered ${response.status}`);
    [status, why] = ['live', null];
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const events = new EventText();
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new Error('the connection to the core node broke');
      });
      if (done) throw new Error('the core node ended the stream');
      clearTimeout(watchdog);
      watchdog = setTimeout(() => silence.abort(), SILENCE_MS);
      takeAll(events.feed(decoder.decode(value, { stream: true })));
    }
  } catch (error) {
    throw silence.signal.aborted ? new Error(`nothing was heard for ${SILENCE_MS / 1_000} s`) : error;
  } finally {
    clearTimeout(watchdog);
    silence.abort();
  }
}

async function follow(first: LiveWish): Promise<never> {
  let failures = 0;
  for (;;) {
    const before = cursor;
    try {
      await readConnection(first);
    } catch (error) {
      [status, why] = ['lost', error instanceof Error ? error.message : String(error)];
    }
    failures = cursor === before ? failures + 1 : 1;
    await new Promise((resolve) =>
      setTimeout(resolve, Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** Math.min(failures, 8))),
    );
  }
}

function rowsOf({ from, size }: LiveWish): LiveMessage[] {
  const top = from ?? ring.total - 1;
  const kept: LiveMessage[] = [];
  for (let number = top; number >= ring.first && kept.length < size; number--) kept.push(ring.at(number)!);
  return kept;
}

function changesOf(machine: string): LiveChange[] {
  const found: LiveChange[] = [];
  if (machine === '') return found;
  for (let at = changes.total - 1; at >= changes.first && found.length < CHANGES_TOLD; at--) {
    const one = changes.at(at)!;
    if (one.machine === machine) found.push(one);
  }
  return found;
}

function tell(): void {
  if (!wish) return;
  const perSecond = rate.series(Date.now());
  const state: LiveState = {
    status,
    why,
    total: ring.total,
    perSecond,
    lagMs,
    rows: rowsOf(wish),
    first: ring.first,
    changes: changesOf(wish.machine),
  };
  postMessage(state);
}

addEventListener('message', ({ data }: MessageEvent<LiveWish>) => {
  const isFirst = wish === undefined;
  const isOther = !isFirst && JSON.stringify(wish!.filter) !== JSON.stringify(data.filter);
  // What did not fit before is gone: another filter begins anew.
  if (isOther) ring = new Ring(KEPT);
  wish = data;
  if (isFirst) {
    ({ cursor } = data);
    setInterval(tell, TELL_MS);
    void follow(data);
  }
  tell();
});
