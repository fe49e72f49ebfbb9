import { Slots } from '@skerry/kit';
import type { NetworkEvent } from '@skerry/protocol';
import type { EventKind } from '@skerry/protocol/api/core/events';
import type { EventLog } from './log.ts';

/** Events of one page. Pages begin at multiples of it, so that readers at different places share them. */
const PAGE_EVENTS = 256;
/** Text of pages that is kept for the next reader, and how many pages that may be. */
const KEPT_CHARS = 16 * 1024 * 1024;
const KEPT_PAGES = 512;
/** Pages that are read at once for those who catch up: the database's other connections are for everybody else. */
const READS_AT_ONCE = 2;
/** What one reader is given at a time; a larger event comes alone. */
const PIECE_CHARS = 64 * 1024;
/** Another process may have written: what the end of the log was is believed for so long. */
const END_MS = 500;

export interface Piece {
  /** Server-sent events, whole ones; empty at the end of the log, and where no event is of the wanted kinds. */
  readonly text: string;
  /** The last event that was looked at; where the reader was at the end of the log. */
  readonly cursor: number;
}

interface Page {
  readonly start: number;
  readonly sinceMs: number;
  readonly seqs: number[];
  readonly kinds: EventKind[];
  readonly frames: string[];
  chars: number;
  growing: Promise<void> | undefined;
}

const frameOf = (event: NetworkEvent) =>
  `id: ${event.cursor}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;

const startOf = (seq: number) => seq - (seq % PAGE_EVENTS);
const lastOf = ({ seqs, start }: Page) => seqs.at(-1) ?? start;
const isFull = ({ seqs }: Page) => seqs.length >= PAGE_EVENTS;

/** Kinds that are wanted; undefined: all. */
export type WantedKinds = readonly EventKind[] | undefined;

/** The frames after the cursor, as many as one piece holds. */
function pieceOf({ seqs, kinds, frames }: Page, cursor: number, wanted: WantedKinds): Piece | undefined {
  const from = seqs.findIndex((seq) => seq > cursor);
  if (from < 0) return undefined;
  const taken: string[] = [];
  let chars = 0;
  let at = from;
  for (; at < frames.length; at++) {
    if (wanted && !wanted.includes(kinds[at]!)) continue;
    if (chars > 0 && chars + frames[at]!.length > PIECE_CHARS) break;
    chars += frames[at]!.length;
    taken.push(frames[at]!);
  }
  return { text: taken.join(''), cursor: seqs[at - 1]! };
}

export interface FeedOptions {
  /** How long a page is kept; for ever where it is left out. */
  readonly keptMs?: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/**
 * The event log for many readers at once. Each page is read and written as text once, however many ask for it, and a
 * bounded number of pages at a time: readers who catch up cost the writers next to nothing.
 */
export class EventFeed {
  readonly #log: Pick<EventLog, 'read' | 'lastCursor' | 'wakes'>;
  readonly #now: () => number;
  readonly #keptMs: number;
  readonly #reads = new Slots(READS_AT_ONCE);
  /** The longest unused first. */
  readonly #pages = new Map<number, Page>();
  #chars = 0;
  #end = { seq: 0, wakes: -1, atMs: Number.NEGATIVE_INFINITY };
  #asking: Promise<void> | undefined;

  constructor(
    log: Pick<EventLog, 'read' | 'lastCursor' | 'wakes'>,
    { keptMs = Number.POSITIVE_INFINITY, now = () => performance.now() }: FeedOptions = {},
  ) {
    this.#log = log;
    this.#now = now;
    this.#keptMs = keptMs;
  }

  /** What comes after the cursor. Who waits for more afterwards asks the log for that before calling this. */
  async next(cursor: number, wanted?: WantedKinds): Promise<Piece> {
    for (let start = startOf(cursor); ; start += PAGE_EVENTS) {
      const page = this.#find(start);
      const had = page && pieceOf(page, cursor, wanted);
      if (had) return this.#used(page, had);
      // Nothing is read for a cursor beyond the end, wherever that is.
      if (!(page && isFull(page)) && (await this.#findEnd()) <= cursor) return { text: '', cursor };
      const grown = await this.#grow(start);
      const piece = pieceOf(grown, cursor, wanted);
      if (piece) return this.#used(grown, piece);
      if (!isFull(grown)) return { text: '', cursor };
    }
  }

  /** A page that is kept; one that is too old is let go. */
  #find(start: number): Page | undefined {
    const page = this.#pages.get(start);
    if (!page || this.#now() - page.sinceMs < this.#keptMs) return page;
    this.#pages.delete(start);
    this.#chars -= page.chars;
    return undefined;
  }

  #used(page: Page, piece: Piece): Piece {
    if (this.#pages.delete(page.start)) this.#pages.set(page.start, page);
    return piece;
  }

  /** The number of the last event, asked for once for all readers that a change wakes. */
  async #findEnd(): Promise<number> {
    const isFresh = () => this.#end.wakes === this.#log.wakes && this.#now() - this.#end.atMs < END_MS;
    if (isFresh()) return this.#end.seq;
    // One that is under way may have begun before the change that this reader was woken for.
    await this.#asking;
    if (isFresh()) return this.#end.seq;
    this.#asking ??= this.#askEnd().finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
    return this.#end.seq;
  }

  async #askEnd(): Promise<void> {
    const { wakes } = this.#log;
    const atMs = this.#now();
    this.#end = { seq: Number(await this.#log.lastCursor()), wakes, atMs };
  }

  async #grow(start: number): Promise<Page> {
    const kept = this.#find(start);
    const fresh = { start, sinceMs: this.#now(), seqs: [], kinds: [], frames: [], chars: 0 };
    const page: Page = kept ?? { ...fresh, growing: undefined };
    if (!kept) this.#pages.set(start, page);
    if (isFull(page)) return page;
    // The end moved on before this reader came; what is under way may have begun before that.
    await page.growing;
    if (isFull(page) || lastOf(page) >= this.#end.seq) return page;
    page.growing ??= this.#readInto(page).finally(() => {
      page.growing = undefined;
    });
    await page.growing;
    return page;
  }

  async #readInto(page: Page): Promise<void> {
    const missing = PAGE_EVENTS - page.seqs.length;
    const read = () => this.#log.read(String(lastOf(page)), missing);
    // The newest page is everybody's who is up to date: it never waits for those who catch up.
    const events = page.start >= startOf(this.#end.seq) ? await read() : await this.#reads.run(read);
    let chars = 0;
    for (const event of events) {
      const frame = frameOf(event);
      page.seqs.push(Number(event.cursor));
      page.kinds.push(event.kind);
      page.frames.push(frame);
      chars += frame.length;
    }
    page.chars += chars;
    if (this.#pages.get(page.start) !== page) return;
    this.#chars += chars;
    this.#forget(page);
  }

  #forget(except: Page): void {
    for (const page of this.#pages.values()) {
      if (this.#chars <= KEPT_CHARS && this.#pages.size <= KEPT_PAGES) return;
      if (page === except) continue;
      this.#pages.delete(page.start);
      this.#chars -= page.chars;
    }
  }
}
