import { Slots } from '@skerry/kit';
import type { NetworkEvent } from '@skerry/protocol';
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
  /** Server-sent events, whole ones; empty at the end of the log. */
  readonly text: string;
  /** The last event of it, or where the reader was. */
  readonly cursor: number;
}

interface Page {
  readonly start: number;
  readonly seqs: number[];
  readonly frames: string[];
  chars: number;
  growing: Promise<void> | undefined;
}

const frameOf = (event: NetworkEvent) =>
  `id: ${event.cursor}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;

const startOf = (seq: number) => seq - (seq % PAGE_EVENTS);
const lastOf = ({ seqs, start }: Page) => seqs.at(-1) ?? start;
const isFull = ({ seqs }: Page) => seqs.length >= PAGE_EVENTS;

/** The frames after the cursor, as many as one piece holds. */
function pieceOf({ seqs, frames }: Page, cursor: number): Piece | undefined {
  const from = seqs.findIndex((seq) => seq > cursor);
  if (from < 0) return undefined;
  let to = from + 1;
  let chars = frames[from]!.length;
  while (to < frames.length && chars + frames[to]!.length <= PIECE_CHARS) chars += frames[to++]!.length;
  return { text: frames.slice(from, to).join(''), cursor: seqs[to - 1]! };
}

/**
 * The event log for many readers at once. Each page is read and written as text once, however many ask for it, and a
 * bounded number of pages at a time: readers who catch up cost the writers next to nothing.
 */
export class EventFeed {
  readonly #log: EventLog;
  readonly #now: () => number;
  readonly #reads = new Slots(READS_AT_ONCE);
  /** The longest unused first. */
  readonly #pages = new Map<number, Page>();
  #chars = 0;
  #end = { seq: 0, wakes: -1, atMs: Number.NEGATIVE_INFINITY };
  #asking: Promise<void> | undefined;

  /** @param now milliseconds of a clock that never goes back */
  constructor(log: EventLog, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /** What comes after the cursor. Who waits for more afterwards asks the log for that before calling this. */
  async next(cursor: number): Promise<Piece> {
    for (let start = startOf(cursor); ; start += PAGE_EVENTS) {
      const page = this.#pages.get(start);
      const had = page && pieceOf(page, cursor);
      if (had) return this.#used(page, had);
      // Nothing is read for a cursor beyond the end, wherever that is.
      if (!(page && isFull(page)) && (await this.#findEnd()) <= cursor) return { text: '', cursor };
      const grown = await this.#grow(start);
      const piece = pieceOf(grown, cursor);
      if (piece) return this.#used(grown, piece);
      if (!isFull(grown)) return { text: '', cursor };
    }
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
    const kept = this.#pages.get(start);
    const page: Page = kept ?? { start, seqs: [], frames: [], chars: 0, growing: undefined };
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
