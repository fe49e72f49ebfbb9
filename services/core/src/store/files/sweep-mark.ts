import { randomUUID } from 'node:crypto';
import { Failures, type Logger } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** A word that whoever removes files from a store leaves there, where others reach the same store. */
export interface StoreMark {
  /** With how long it has been there, by the store's own clock. Throws STORAGE_UNAVAILABLE. */
  read(): Promise<{ readonly word: string; readonly ageMs: number } | undefined>;
  /** Throws STORAGE_FULL, STORAGE_UNAVAILABLE. */
  write(word: string): Promise<void>;
}

/** A word is replaced by another one after so long. */
const RENEWED_MS = 600_000;
/** One that was not replaced for so long is of a node that is gone. */
const ABANDONED_MS = 7_200_000;

/**
 * Whether this node removes files, and leaves another word first. Pure.
 * @param own the words that its database knows of
 */
export function decideMark(
  found: { readonly word: string; readonly ageMs: number } | undefined,
  own: readonly string[],
): 'stays' | 'renew' | 'of another node' {
  if (!found) return 'renew';
  if (own.includes(found.word)) return found.ageMs < RENEWED_MS ? 'stays' : 'renew';
  return found.ageMs >= ABANDONED_MS ? 'renew' : 'of another node';
}

export interface SweepMarkOptions {
  readonly db: Kysely<Schema>;
  readonly mark: StoreMark;
  readonly log: Logger;
}

/**
 * Keeps two nodes with databases of their own from removing each other's files from one store: a copy of a node that is restored to
 * try its backup, above all, which knows nothing of files that came since. Each word is at random, and stands in the database, too. So a
 * copy of the database does not know the word that the node which goes on has left since, and removes nothing as long as that goes on.
 */
export class SweepMark {
  readonly #options: SweepMarkOptions;
  readonly #failures: Failures;

  constructor(options: SweepMarkOptions) {
    this.#options = options;
    const { log } = options;
    this.#failures = new Failures({ log, what: 'files that no message keeps are not removed' });
  }

  /** Whether this node may remove files from the store now. Throws STORAGE_FULL, STORAGE_UNAVAILABLE. */
  async isOwn(): Promise<boolean> {
    const { db, mark } = this.#options;
    const found = await mark.read();
    const known = await db.selectFrom('sweep_marks').select(['word', 'before']).executeTakeFirst();
    const own = known ? [known.word, known.before].filter((word) => word !== null) : [];
    const decision = decideMark(found, own);
    if (decision === 'of another node') {
      this.#failures.note(
        new Error('another core node, with a database of its own, removes files from the same object store'),
      );
      return false;
    }
    this.#failures.clear();
    if (decision === 'renew') await this.#renew();
    return true;
  }

  /** In the database first: whatever ends this process in between, the word in the store is known. */
  async #renew(): Promise<void> {
    const { db, mark } = this.#options;
    const word = randomUUID();
    await sql`
      insert into sweep_marks (word) values (${word})
      on conflict (id) do update set word = excluded.word, before = sweep_marks.word`.execute(db);
    await mark.write(word);
  }
}
