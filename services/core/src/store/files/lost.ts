import { Failures, type Logger } from '@skerry/kit';
import type { ItemHash } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';
import type { BlobStore, KeptBlob } from './blob-store.ts';

/** Files of one round. A million of them are gone through in seventeen hours. */
const EXAMINED = 1_000;
/** Files that are looked for at once. Those that nobody has make way for others, and are found again. */
const LOST_MAX = 1_000;
const TRIES_MAX = 5;

/** A file that a message in force keeps. */
interface Pinned {
  readonly hash: string;
  readonly sizeBytes: number;
}

/**
 * Which of these files have no blob of their size, and how far was seen. Both lists follow the same hash, in order and as many as
 * `limit` at most. Pure.
 */
export function decideLost(
  pinned: readonly Pinned[],
  blobs: readonly Pick<KeptBlob, 'hash' | 'sizeBytes'>[],
  limit: number,
): { readonly lost: readonly string[]; readonly seen: string | undefined } {
  // Beyond the last of a full list there may be more.
  const ends = [pinned, blobs].flatMap((list) => (list.length < limit ? [] : [list.at(-1)!.hash as string]));
  const seen = ends.sort()[0];
  const sizes = new Map<string, number>(blobs.map(({ hash, sizeBytes }) => [hash, sizeBytes]));
  const lost = pinned
    .filter(({ hash, sizeBytes }) => (seen === undefined || hash <= seen) && sizes.get(hash) !== sizeBytes)
    .map(({ hash }) => hash);
  return { lost, seen };
}

export interface LostFilesOptions {
  readonly db: Kysely<Schema>;
  readonly blobs: Pick<BlobStore, 'list'>;
  readonly log: Logger;
  /** Files that one round looks at; EXAMINED by default. */
  readonly examined?: number;
}

/**
 * Files that messages keep and whose bytes are gone, as after a restore without files or on a disk that lost some. They are fetched
 * again (fetcher.ts) as what is new is. Goes through all files in the order of their hashes, a bounded number in each round.
 */
export class LostFiles {
  readonly #options: LostFilesOptions;
  readonly #failures: Failures;
  /** How often each was looked for in vain, and what it is. */
  readonly #tries = new Map<string, { readonly tries: number; readonly sizeBytes: number }>();
  #after = '';
  #isWhole = true;

  constructor(options: LostFilesOptions) {
    this.#options = options;
    const { log } = options;
    this.#failures = new Failures({
      log,
      what: 'files that messages keep are gone; peers are asked for them',
    });
  }

  get names(): readonly string[] {
    return [...this.#tries.keys()];
  }

  /** One that somebody else found to be lost. */
  add(name: string, sizeBytes: number): void {
    if (this.#tries.size < LOST_MAX && !this.#tries.has(name)) this.#tries.set(name, { tries: 0, sizeBytes });
  }

  /** Bytes of a lost file; undefined of any other. */
  sizeOf(name: string): number | undefined {
    return this.#tries.get(name)?.sizeBytes;
  }

  /** One round. @returns whether the next one may follow at once */
  async round(): Promise<boolean> {
    const { db, blobs, examined = EXAMINED } = this.#options;
    if (this.#tries.size >= LOST_MAX) return false;
    const after = this.#after;
    // In this order: what is stored meanwhile has its blob before its row.
    const { rows } = await sql<Pinned>`
      select hash, size_bytes as "sizeBytes" from files
      where hash > ${after} and length(hash) = 64
        and exists (select from file_pins where file_hash = hash)
      order by hash limit ${examined}`.execute(db);
    const unread: string[] = [];
    const kept = await blobs.list(after === '' ? undefined : (after as ItemHash), examined, (prefix) =>
      unread.push(prefix),
    );
    const found = decideLost(rows, kept, examined);
    const { seen } = found;
    // What cannot be read may be there: who reads the files again finds out (disk/scrub.ts).
    const lost = found.lost.filter((hash) => !unread.some((prefix) => hash.startsWith(prefix)));
    const isLost = new Set(lost);
    for (const { hash, sizeBytes } of rows)
      if (isLost.has(hash) && !this.#tries.has(hash)) this.#tries.set(hash, { tries: 0, sizeBytes });
    this.#tell(lost.length, seen === undefined);
    this.#after = seen ?? '';
    return lost.length > 0 && seen !== undefined;
  }

  /** A file was looked for. */
  note(name: string, isHere: boolean): void {
    const known = this.#tries.get(name);
    if (known === undefined) return;
    const tries = known.tries + 1;
    if (isHere || tries >= TRIES_MAX) this.#tries.delete(name);
    else this.#tries.set(name, { ...known, tries });
  }

  #tell(count: number, isEnd: boolean): void {
    if (count > 0) this.#failures.note(new Error(`${count} files are not where they were kept`));
    this.#isWhole &&= count === 0;
    if (!isEnd) return;
    if (this.#isWhole) this.#failures.clear();
    this.#isWhole = true;
  }
}
