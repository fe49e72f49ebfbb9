import { mayHoldLong } from '@skerry/database';
import { Slots } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';
import { IMPORT_PREFIX, isNoFile } from './block-index.ts';
import { IPFS_LIMITS } from './limits.ts';

/** Roots that one round of tidying looks at: a million are gone through in seventeen hours. */
const TIDIED = 1_000;

/**
 * What a daemon was asked to pin. It has one pin of each CID, whichever process of the node asks, and knows nothing of files: these rows
 * keep whoever pins apart from whoever lets go.
 */
export interface PinBook {
  /**
   * Before a CID is pinned; waits for whoever is letting go of it.
   * @returns when, in milliseconds since 1970: later than whoever began before, also where the clock was set back
   */
  begin(root: string): Promise<number>;
  /**
   * Calls `unpin` unless the CID is a file, or somebody has begun to pin it at or after `beforeMs` (milliseconds since 1970). Nobody
   * begins meanwhile, so it has to end within the time that one may wait for a lock. Where it throws, `listLeft` names the CID again.
   * Throws what `unpin` throws, and OVERLOADED.
   */
  letGo(root: string, beforeMs: number, unpin: () => Promise<void>): Promise<void>;
  /** CIDs of before this time that are no files, among the next ones after a name, in their order. */
  listLeft(beforeMs: number, after: string): Promise<LeftRoots>;
}

export interface LeftRoots {
  readonly cids: readonly string[];
  /** After which name to go on; empty at the end of the book. */
  readonly next: string;
}

export function createPinBook(db: Kysely<Schema>, now: () => number): PinBook {
  const slots = new Slots(IPFS_LIMITS.unpins, {
    waitingMax: IPFS_LIMITS.waiting,
    waitMs: IPFS_LIMITS.slotWaitMs,
    refusal: 'too many CIDs are being let go of',
  });
  return {
    async begin(root) {
      const { rows } = await sql<{ touched_ms: number }>`
        insert into ipfs_dags as old (root, complete, touched_ms) values (${root}, false, ${now()})
        on conflict (root) do update set
          touched_ms = greatest(excluded.touched_ms, old.touched_ms + 1)
        returning touched_ms`.execute(db);
      return rows[0]!.touched_ms;
    },
    async letGo(root, beforeMs, unpin) {
      // A release before may have pinned it and noted nothing.
      await sql`insert into ipfs_dags (root, complete, touched_ms) values (${root}, false, 0)
        on conflict do nothing`.execute(db);
      using _slot = await slots.take();
      await db.transaction().execute(async (trx) => {
        const { rows } = await sql`
          select from ipfs_dags where root = ${root} and touched_ms < ${beforeMs} and ${isNoFile} for update`.execute(
          trx,
        );
        if (rows.length === 0) return;
        await mayHoldLong(trx);
        await unpin();
        await trx.deleteFrom('ipfs_dags').where('root', '=', root).execute();
      });
    },
    async listLeft(beforeMs, after) {
      const { rows } = await sql<{ root: string; is_left: boolean }>`
        select root, touched_ms < ${beforeMs} and ${isNoFile} as is_left from ipfs_dags
        where root > ${after} and not starts_with(root, ${IMPORT_PREFIX}) order by root limit ${TIDIED}`.execute(
        db,
      );
      return {
        cids: rows.flatMap(({ root, is_left }) => (is_left ? [root] : [])),
        next: rows.length < TIDIED ? '' : rows.at(-1)!.root,
      };
    },
  };
}
