import { type Client, type Held, type NoShare, Shares } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** What a file counts as that is smaller: its name, its place in the database and on the disk. */
const LEAST_BYTES = 64 * 1024;
/** Seconds after which a client is told to come back. */
const RETRY_AFTER = 3_600;

export interface UnpinnedLimits {
  /** Files without a message that are kept for the grace period, together. */
  readonly unpinnedBytes: number;
  readonly unpinnedBytesPerClient: number;
}

interface Use {
  readonly client: number;
  readonly all: number;
}

/**
 * What clients may have this node keep. A signed message says whose a file is, and it is that owner's; a file
 * without one uses the share of the client that sent it until a message names it or the grace period ends.
 */
export class Uploads {
  readonly #db: Kysely<Schema>;
  readonly #limits: UnpinnedLimits;
  readonly #unpinned: Shares;

  constructor(db: Kysely<Schema>, limits: UnpinnedLimits) {
    this.#db = db;
    this.#limits = limits;
    const { unpinnedBytes, unpinnedBytesPerClient } = limits;
    this.#unpinned = new Shares({
      total: Math.max(unpinnedBytes, LEAST_BYTES),
      reserve: 0,
      perClient: unpinnedBytesPerClient,
    });
  }

  /**
   * Room for a file without a message, held while it comes. Throws UPLOAD_SHARE_USED, STORAGE_FULL.
   * @param atMost its size where that is known, or the largest that is taken
   */
  async beginUnpinned(client: Client, atMost: number): Promise<Held> {
    const bytes = Math.max(atMost, LEAST_BYTES);
    if (client.isExempt) return { release: () => {} };
    const held = this.#unpinned.take(client, bytes);
    if (typeof held === 'string') throw this.#refusal(held);
    try {
      const { unpinnedBytes, unpinnedBytesPerClient } = this.#limits;
      const used = await this.#use(client.key);
      if (used.client + this.#unpinned.heldBy(client.key) > unpinnedBytesPerClient)
        throw this.#refusal('share');
      if (used.all + this.#unpinned.held > unpinnedBytes) throw this.#refusal('all');
      return held;
    } catch (error) {
      held.release();
      throw error;
    }
  }

  /** Throws UPLOAD_SHARE_USED where the client has used more than its share. */
  async checkShare({ key, isExempt }: Client): Promise<void> {
    if (!isExempt && (await this.#use(key)).client > this.#limits.unpinnedBytesPerClient)
      throw this.#refusal('share');
  }

  /** Notes a file that is kept now; before what `beginUnpinned` gave is released. */
  async note({ key, isExempt }: Client, hash: string, sizeBytes: number): Promise<void> {
    if (isExempt) return;
    await sql`insert into unpinned_uploads (hash, client, bytes)
      select hash, ${key}, ${Math.max(sizeBytes, LEAST_BYTES)} from files where hash = ${hash}
      on conflict do nothing`.execute(this.#db);
  }

  /** What a message keeps is its owner's and counts no more. */
  async #use(client: string): Promise<Use> {
    await sql`delete from unpinned_uploads u
      where exists (select from file_pins where file_hash = u.hash)`.execute(this.#db);
    const { rows } = await sql<Use>`
      select coalesce(sum(bytes) filter (where client = ${client}), 0)::float8 as client,
        coalesce(sum(bytes), 0)::float8 as all from unpinned_uploads`.execute(this.#db);
    return rows[0]!;
  }

  #refusal(reason: NoShare): AppError {
    const { unpinnedBytes, unpinnedBytesPerClient } = this.#limits;
    const advice = 'send a signed STORE message with the file, or try again later';
    const details = { retry_after: RETRY_AFTER };
    return reason === 'share'
      ? new AppError(
          'UPLOAD_SHARE_USED',
          `without messages, a client can leave ${unpinnedBytesPerClient} bytes of files here; ${advice}`,
          { details },
        )
      : new AppError(
          'STORAGE_FULL',
          `the node is at its limit of ${unpinnedBytes} bytes of files without messages; ${advice}`,
          { details },
        );
  }
}
