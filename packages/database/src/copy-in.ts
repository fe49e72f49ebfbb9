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
}

/**
 * Statements of COPY with all their rows, sent in one piece: the server finds the rows in its socket when it comes to them, so that
 * neither waits for the other, and what is copied into several tables takes one way there and back. Where it refuses a statement it
 * passes over rows that come after it (PostgreSQL documentation, "Message Flow", COPY Operations).
 */
class CopyIn extends pg.Query {
  readonly #copies: readonly Copied[];

  constructor(copies: readonly Copied[], callback: (error?: Error | null) => void) {
    super('', callback);
    this.#copies = copies;
  }

  override readonly submit = (connection: pg.Connection): void => {
    const { stream } = connection;
    const to = connection as CopyConnection;
    stream.cork();
    to.query(this.#copies.map(({ statement }) => statement).join(';'));
    for (const { chunks } of this.#copies) {
      for (const chunk of chunks) to.sendCopyFromChunk(Buffer.from(chunk));
      to.endCopyFrom();
    }
    stream.uncork();
  };

  /** The rows are on their way. */
  handleCopyInResponse(): void {}
}

/** Copies rows into their tables, in this order. */
export const copyIn = (client: pg.ClientBase, copies: readonly Copied[]): Promise<void> =>
  new Promise((resolve, reject) => {
    client.query(new CopyIn(copies, (error) => (error ? reject(error) : resolve())));
  });
