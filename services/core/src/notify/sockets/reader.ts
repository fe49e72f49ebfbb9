import { BACKLOG_BYTES, type Connection } from './connection.ts';

/** A message as it goes out, with the number of the event that told of it. */
export interface Numbered {
  readonly seq: number;
  readonly frame: Buffer;
}

/** Messages that go out together: the bytes are the same for all who get them. */
export class Piece {
  readonly messages: readonly Numbered[];
  #bytes: Buffer | undefined;

  constructor(messages: readonly Numbered[]) {
    this.messages = messages;
  }

  get bytes(): Buffer {
    const [first, ...others] = this.messages;
    this.#bytes ??=
      others.length === 0 ? first!.frame : Buffer.concat(this.messages.map(({ frame }) => frame));
    return this.#bytes;
  }
}

/** What there was when a reader came. */
export interface History {
  /** Up to this event: what comes after it is new to the reader. */
  readonly seq: number;
  readonly frames: readonly Buffer[];
}

/**
 * One who follows messages. What comes while its history is read and sent is kept for it, and given after that: from then
 * on everything goes out as it comes.
 */
export class Reader {
  readonly #onEnd: (isLetGo: boolean) => void;
  #connection: Connection | undefined;
  /** undefined: the history went out. */
  #kept: Numbered[] | undefined = [];
  #keptBytes = 0;
  #isOver = false;
  /** The event up to which the history stands. Others may be told of it later than who read it. */
  #seq = 0;

  /** @param onEnd is told once, and whether the reader was let go since it did not read */
  constructor(onEnd: (isLetGo: boolean) => void) {
    this.#onEnd = onEnd;
  }

  get unread(): number {
    return this.#keptBytes + (this.#connection?.unread ?? 0);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  give(piece: Piece): void {
    if (this.#isOver) return;
    if (this.#kept) {
      this.#kept.push(...piece.messages);
      this.#keptBytes += piece.bytes.length;
      if (this.#keptBytes > BACKLOG_BYTES) this.letGo();
    } else if (this.#connection!.unread > BACKLOG_BYTES) this.letGo();
    else if (piece.messages[0]!.seq > this.#seq) this.#connection!.write(piece.bytes);
    else this.#writeNew(piece.messages);
  }

  /** @param sent is called when the history went out */
  begin(connection: Connection, { seq, frames }: History, sent: () => void = () => {}): void {
    this.#connection = connection;
    this.#seq = seq;
    connection.onClose(() => this.end());
    const last = frames.at(-1);
    for (const frame of frames.slice(0, -1)) connection.write(frame);
    const goOn = () => {
      sent();
      this.#goOn();
    };
    if (last) connection.write(last, goOn);
    else goOn();
  }

  letGo(): void {
    this.#end(true);
    this.#connection?.letGo();
  }

  /** Nothing is given any more. */
  end(): void {
    this.#end(false);
  }

  #end(isLetGo: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#kept = [];
    this.#keptBytes = 0;
    this.#onEnd(isLetGo);
  }

  /** Gives what came meanwhile and is not in the history. */
  #goOn(): void {
    if (this.#isOver) return;
    this.#writeNew(this.#kept ?? []);
    this.#kept = undefined;
    this.#keptBytes = 0;
  }

  #writeNew(messages: readonly Numbered[]): void {
    for (const { seq, frame } of messages) if (seq > this.#seq) this.#connection!.write(frame);
  }
}
