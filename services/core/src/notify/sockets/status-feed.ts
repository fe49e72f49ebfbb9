import type { Logger } from '@skerry/kit';
import { BACKLOG_BYTES, type Connection } from './connection.ts';
import { textFrame } from './frame.ts';

/** What the node counts is asked for so often while somebody reads it. */
const LOOK_MS = 10_000;

type Reading = Pick<Connection, 'unread' | 'write' | 'letGo' | 'onClose'>;

/** What the node counts of itself, for all who read it: once at the beginning, and again when it has changed. */
export class StatusFeed {
  readonly #read: () => Promise<object>;
  readonly #log: Logger;
  readonly #lookMs: number;
  /** With what each was told last. */
  readonly #readers = new Map<Reading, Buffer>();
  #timer: NodeJS.Timeout | undefined;
  #text = '';
  #frame = textFrame('');
  letGo = 0;

  constructor(read: () => Promise<object>, log: Logger, lookMs = LOOK_MS) {
    this.#read = read;
    this.#log = log;
    this.#lookMs = lookMs;
  }

  /** What is told first. */
  async current(): Promise<Buffer> {
    const text = JSON.stringify(await this.#read());
    if (text !== this.#text) {
      this.#text = text;
      this.#frame = textFrame(text);
    }
    return this.#frame;
  }

  add(connection: Reading, first: Buffer): void {
    this.#readers.set(connection, first);
    connection.write(first);
    connection.onClose(() => this.#readers.delete(connection));
    this.#timer ??= this.#lookLater();
  }

  #lookLater(): NodeJS.Timeout {
    return setTimeout(() => void this.#look(), this.#lookMs).unref();
  }

  async #look(): Promise<void> {
    try {
      const frame = await this.current();
      for (const [connection, told] of this.#readers) if (told !== frame) this.#tell(connection, frame);
    } catch (error) {
      this.#log.warn({ err: error }, 'the status for WebSockets could not be read');
    }
    this.#timer = this.#readers.size > 0 ? this.#lookLater() : undefined;
  }

  #tell(connection: Reading, frame: Buffer): void {
    if (connection.unread > BACKLOG_BYTES) {
      this.letGo++;
      this.#readers.delete(connection);
      connection.letGo();
      return;
    }
    this.#readers.set(connection, frame);
    connection.write(frame);
  }
}
