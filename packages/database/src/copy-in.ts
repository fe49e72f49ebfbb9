import { once } from 'node:events';
import pg from 'pg';

/** Rows for one table, in COPY's text format (PostgreSQL documentation, "COPY", File Formats). */
export interface Copied {
  /** `copy ... from stdin` */
  readonly statement: string;
  readonly chunks: Iterable<string>;
}

/** What `pg` has for a COPY and its types do not name. */
interface CopyConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

/** A reason that is made once: without one, each end of a COPY makes an error with a stack that nobody reads. */
const OVER = new Error('the COPY is over');

/**
 * Statements of COPY with their rows behind them: the server finds the rows in its socket when it comes to them, so that neither
 * waits for the other, and what is copied into several tables takes one way there and back. What the socket does not take at once
 * is formatted when it does. Rows that cannot be made fail the COPY with the error of whoever makes them. Where the server refuses a statement it passes over rows that come after it (PostgreSQL documentation,
 * "Message Flow", COPY Operations).
 */
class CopyIn extends pg.Query {
  readonly #copies: readonly Copied[];
  /** Why the rows ended early, where that is not the server's word. */
  #failure: Error | undefined;
  readonly #over: AbortController;
  readonly #sent: PromiseWithResolvers<void>;

  constructor(copies: readonly Copied[], callback: (error?: Error | null) => void) {
    const over = new AbortController();
    const sent = Promise.withResolvers<void>();
    super('', (error) => {
      over.abort(OVER);
      // Also where the connection was gone, and nothing could be sent.
      sent.resolve();
      callback(this.#failure ?? error);
    });
    this.#sent = sent;
    this.#over = over;
    this.#copies = copies;
  }

  /** Resolves when a statement may be sent behind the rows, or the COPY is over. */
  get sent(): Promise<void> {
    return this.#sent.promise;
  }

  override readonly submit = (connection: pg.Connection): void => {
    void this.#send(connection as CopyConnection);
  };

  async #send(to: CopyConnection): Promise<void> {
    const { stream } = to;
    const { signal } = this.#over;
    stream.cork();
    try {
      to.query(this.#copies.map(({ statement }) => statement).join(';'));
      for (const { chunks } of this.#copies) {
        for (const chunk of chunks) {
          to.sendCopyFromChunk(Buffer.from(chunk));
          if (!stream.writableNeedDrain) continue;
          stream.uncork();
          await once(stream, 'drain', { signal });
          stream.cork();
        }
        to.endCopyFrom();
      }
    } catch (error) {
      // Where it is over, the server says why.
      if (!signal.aborted) {
        this.#failure = error as Error;
        to.sendCopyFail(this.#failure.message);
      }
    } finally {
      stream.uncork();
      this.#sent.resolve();
    }
  }

  /** The rows are on their way. */
  handleCopyInResponse(): void {}
}

/** Copies rows into their tables, in this order. `sent`: what is sent from then on comes behind the rows. */
export function copyIn(
  client: pg.ClientBase,
  copies: readonly Copied[],
): { readonly sent: Promise<void>; readonly done: Promise<void> } {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  const { sent } = client.query(new CopyIn(copies, (error) => (error ? reject(error) : resolve())));
  return { sent, done };
}
