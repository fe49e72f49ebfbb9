import { mayHoldLong } from '@skerry/database';
import { type Logger, runLoop } from '@skerry/kit';
import type { ItemHash } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';
import { lockWrites } from '../write-lock.ts';
import type { BlobStore, KeptBlob } from './blob-store.ts';
import type { Claims } from './claims.ts';
import { isUnreadable, PassedOver } from './disk/unreadable.ts';
import { doom, holdDoomed, listDoomed, spare, takeDoomed } from './doomed.ts';
import type { Parts } from './parts/parts.ts';
import type { SweepMark } from './sweep-mark.ts';

const INTERVAL_MS = 60_000;
/** Blobs of one round. A million of them are gone through in seventeen hours. */
const ROUND = { examined: 1_000, removed: 200 } as const;

/** What the database knows of a blob. */
export type Reference = 'pinned' | 'unpinned';

/** So long a blob is on the list of those that go: storing the same bytes, from the look at the list to the blob, takes less. */
const DOOMED_MS = 3_600_000;

/** The blobs that nobody asked to keep, and that were not kept again since `cutoffMs`; at most `limit` of them, in order. */
export function decideSweep(
  blobs: readonly KeptBlob[],
  references: ReadonlyMap<string, Reference>,
  cutoffMs: number,
  limit: number,
): ItemHash[] {
  return blobs
    .filter((blob) => blob.keptAtMs < cutoffMs && references.get(blob.hash) !== 'pinned')
    .slice(0, limit)
    .map((blob) => blob.hash);
}

/** Whether something of IPFS is made of this blob. */
async function isBlock(db: Kysely<Schema>, hash: string): Promise<boolean> {
  const { rows } = await sql`select from ipfs_blocks where block = decode(${hash}, 'hex') limit 1`.execute(
    db,
  );
  return rows.length > 0;
}

export interface SweepOptions {
  readonly db: Kysely<Schema>;
  readonly blobs: BlobStore;
  readonly claims: Claims;
  /** Keeps two nodes from removing each other's blobs, where they reach the same ones. */
  readonly mark?: Pick<SweepMark, 'isOwn'> | undefined;
  readonly graceMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
  /** Blobs that one round may look at and remove; ROUND by default. */
  readonly limits?: { readonly examined: number; readonly removed: number };
  /** Between finding a blob and removing it; DOOMED_MS by default. */
  readonly doomedMs?: number;
}

/**
 * Removes blobs that no message keeps: uploads whose message was refused or never written, and files without a message.
 * Goes through all blobs in the order of their hashes, a bounded number in each round.
 */
export class Sweep {
  readonly #options: SweepOptions;
  readonly #unread: PassedOver;
  #after: ItemHash | undefined;

  constructor(options: SweepOptions) {
    this.#options = options;
    const what =
      'the disk cannot read some of the files: they are not looked at, whether a message keeps them';
    this.#unread = new PassedOver(options.log, what);
  }

  /** One round; resolves with the number of blobs removed. */
  async round(): Promise<number> {
    const { db, blobs, mark, log, now, graceMs, limits = ROUND } = this.#options;
    if (mark && !(await mark.isOwn())) return 0;
    const examined = await blobs.list(this.#after, limits.examined, this.#unread.note);
    const cutoffMs = now() - graceMs;
    const old = examined.filter((blob) => blob.keptAtMs < cutoffMs);
    const found = decideSweep(old, await this.#loadReferences(db, old), cutoffMs, limits.removed);
    await doom(db, found, now());
    const removed = await this.#removeDoomed(cutoffMs, limits.removed);
    this.#unread.tell();
    // Where there may be more to remove than one round does, the next one goes on behind the last that was found.
    if (found.length === limits.removed) this.#after = found.at(-1);
    else this.#after = examined.length < limits.examined ? undefined : examined.at(-1)!.hash;
    if (removed > 0) log.info({ removed }, 'removed files that no message keeps');
    return removed;
  }

  async #removeDoomed(cutoffMs: number, limit: number): Promise<number> {
    const { db, claims, now, doomedMs = DOOMED_MS } = this.#options;
    const nowMs = now();
    const due = await listDoomed(db, { beforeMs: nowMs - doomedMs, afterMs: nowMs, limit });
    let removed = 0;
    for (const hash of due as ItemHash[]) {
      // Whoever stores this blob now has the claim, or waits for ours to end and then stores it anew.
      using claim = claims.tryTake(hash);
      if (!claim) continue;
      try {
        if ((await this.#forget(hash)) && (await this.#remove(hash, cutoffMs))) removed++;
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        this.#unread.note(hash, error);
      }
    }
    return removed;
  }

  /** Removes a blob, unless it was stored again since it was found. Other processes that store it wait meanwhile. */
  #remove(hash: ItemHash, cutoffMs: number): Promise<boolean> {
    const { db, blobs } = this.#options;
    return db.transaction().execute(async (trx) => {
      // Were it ended while the store removes the blob, somebody could keep the same bytes before they go.
      await mayHoldLong(trx);
      if (!(await takeDoomed(trx, hash))) return false;
      const blob = await blobs.find(hash);
      if (!blob) return false;
      const [doomed] = decideSweep([blob], await this.#loadReferences(trx, [blob]), cutoffMs, 1);
      if (doomed === undefined) return false;
      await blobs.remove(doomed);
      return true;
    });
  }

  async #loadReferences(db: Kysely<Schema>, examined: readonly KeptBlob[]): Promise<Map<string, Reference>> {
    if (examined.length === 0) return new Map();
    const hashes = examined.map((blob) => blob.hash);
    const { rows } = await sql<{ hash: string; pinned: boolean }>`
      select hash, exists (select from file_pins where file_hash = hash)
        or exists (select from ipfs_blocks where block = decode(hash, 'hex')) as pinned
      from unnest(${hashes}::text[]) as hash`.execute(db);
    return new Map(rows.map(({ hash, pinned }) => [hash, pinned ? 'pinned' : 'unpinned']));
  }

  /**
   * Takes a file out of the database unless it was stored again since it was found, or a message pins it. Under the lock of those who write
   * messages: none can pin it meanwhile. Whoever stores it now waits, and then notes it anew.
   */
  #forget(hash: ItemHash): Promise<boolean> {
    return this.#options.db.transaction().execute(async (trx) => {
      if (!(await holdDoomed(trx, hash))) return false;
      await lockWrites(trx);
      const pin = await trx
        .selectFrom('file_pins')
        .select('file_hash')
        .where('file_hash', '=', hash)
        .executeTakeFirst();
      if (pin || (await isBlock(trx, hash))) {
        await spare(trx, [hash]);
        return false;
      }
      await trx.deleteFrom('files').where('hash', '=', hash).execute();
      return true;
    });
  }
}

export interface SweepingOptions {
  readonly sweep: Pick<Sweep, 'round'>;
  readonly parts: Pick<Parts, 'tidy'>;
  /** Whether the disk is there; while it is not, nothing is done. */
  readonly isWell: () => boolean;
}

/** Runs rounds, and removes what has come of files that nobody sends on, until the signal ends or it is disposed of; then waits for the round that is under way. */
export function startSweeping(
  { sweep, parts, isWell }: SweepingOptions,
  { signal, log }: { signal: AbortSignal; log: Logger },
): AsyncDisposable {
  const stop = new AbortController();
  const ended = runLoop(
    { name: 'file sweep', intervalMs: INTERVAL_MS, signal: AbortSignal.any([signal, stop.signal]), log },
    async () => {
      if (!isWell()) return;
      await sweep.round();
      await parts.tidy();
    },
  );
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}
