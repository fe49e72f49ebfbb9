import type { Socket } from 'node:net';
import { type AnswerHead, AnswerReader } from './answer.ts';

/** How long the rest of an answer may take once its status is known. */
const ANSWER_REST_MS = 1_000;

/** The answer did not come in time. */
export class TooLate extends Error {
  override readonly name = 'TooLate';
}

const ended = () => Object.assign(new Error('the connection ended'), { code: 'ECONNRESET' });

interface Exchange {
  readonly text: string;
  readonly reader: AnswerReader;
  readonly resolve: (head: AnswerHead) => void;
  readonly reject: (error: Error) => void;
  /** Of the answer; once its status is known, of the rest. */
  timer: NodeJS.Timeout;
}

/** One request at a time, over one socket that is being connected. */
export class Connection {
  /** By this machine's uptime: it is not used again from then on. */
  keptUntilMs = 0;
  readonly #socket: Socket;
  readonly #left: (connection: Connection, keepMs: number) => void;
  #isReady = false;
  #wasHeard = false;
  #exchange: Exchange | undefined;

  /**
   * @param ready what the socket emits when it may be written to
   * @param left told after each answer, with how long the connection may wait for the next request, and when it is closed, with 0
   */
  constructor(
    socket: Socket,
    ready: 'connect' | 'secureConnect',
    left: (connection: Connection, keepMs: number) => void,
  ) {
    this.#socket = socket;
    this.#left = left;
    socket.setNoDelay(true);
    socket.once(ready, () => {
      this.#isReady = true;
      if (this.#exchange) socket.write(this.#exchange.text);
    });
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('error', (error) => this.#end(error));
    for (const event of ['end', 'close']) socket.on(event, () => this.#end(ended()));
  }

  /** Whether anything came since the last request. */
  get wasHeard(): boolean {
    return this.#wasHeard;
  }

  /**
   * Resolves when the answer has come, or so much of it as is waited for, and its status with it.
   * @param text the request, whole
   * @param leftMs until its status; rejects with TooLate after it
   */
  ask(text: string, leftMs: number): Promise<AnswerHead> {
    const { promise, resolve, reject } = Promise.withResolvers<AnswerHead>();
    const timer = setTimeout(() => this.#end(new TooLate()), leftMs);
    this.#exchange = { text, reader: new AnswerReader(), resolve, reject, timer };
    this.#wasHeard = false;
    if (this.#isReady) {
      this.#socket.ref();
      this.#socket.write(text);
    }
    return promise;
  }

  /** It holds the process no longer while it waits for a request. */
  rest(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    const exchange = this.#exchange;
    this.#wasHeard = true;
    // Nobody asked. It would be taken for the answer to the next request.
    if (!exchange) {
      this.#end(ended());
      return;
    }
    const { reader } = exchange;
    const wasKnown = reader.head !== undefined;
    try {
      reader.push(bytes);
    } catch (error) {
      this.#end(error as Error);
      return;
    }
    if (reader.isDone) this.#end();
    else if (reader.head && !wasKnown) {
      clearTimeout(exchange.timer);
      exchange.timer = setTimeout(() => this.#end(ended()), ANSWER_REST_MS);
    }
  }

  /** @param error undefined: the answer is read to its end */
  #end(error?: Error): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    // What answers before it has got everything is still being sent the rest.
    const isSent = this.#socket.writableLength === 0;
    const keepMs = error || !exchange || !isSent ? 0 : exchange.reader.keepMs;
    if (keepMs === 0) this.#socket.destroy();
    this.#left(this, keepMs);
    if (!exchange) return;
    clearTimeout(exchange.timer);
    const { head } = exchange.reader;
    if (head) exchange.resolve(head);
    else exchange.reject(error!);
  }
}
