import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { spare } from '../files/doomed.ts';
import type { Schema } from '../schema.ts';

/** Rows in one statement. */
const ROWS = 5_000;
/** Roots that one round of tidying looks at: unfinished ones, and complete ones. A million of these are gone through in seventeen hours. */
const TIDIED = { unfinished: 100, complete: 1_000 } as const;
/** How old the time of a root may be while blocks come. */
const RENEWED_MS = 60_000;

/** How a root begins that is no CID: a file that comes in. */
export const IMPORT_PREFIX = 'import:';

/** Which blocks each root needs: what the sweep goes by. A root is a CID, or a name of its own while a file comes in. */
export interface BlockIndex {
  /** A root whose blocks are on their way; its time is renewed, and never set back where the clock was. */
  begin(root: string): Promise<void>;
  /** Blocks that a root needs; its time is renewed with them, since all of a file may take longer than the grace period. */
  add(root: string, digests: readonly string[]): Promise<void>;
  /** Renews the time of roots at most once a minute: called for each block that comes, since all that were noted may take long. */
  renewing(...roots: readonly string[]): () => Promise<void>;
  /**
   * Gives the blocks of a root to its CID, and notes that all are there. Throws IPFS_TIMEOUT where the root was let go of meanwhile: then
   * nobody knows which blocks are still there.
   */
  complete(root: string, cid: string): Promise<void>;
  isComplete(cid: string): Promise<boolean>;
  /** @param beforeMs as long as nobody has begun with it again since, in whichever process; whatever happened, where left out */
  drop(root: string, beforeMs?: number): Promise<void>;
  /** Drops a root unless all of it is here. */
  abandon(root: string): Promise<void>;
  /** Drops roots of before this time that were never completed, and complete ones that became no file: who took them in was cut off. */
  tidy(beforeMs: number): Promise<void>;
}

const bytesOf = (digests: readonly string[]) => digests.map((digest) => Buffer.from(digest, 'hex'));

/** Of a row of ipfs_dags. */
export const isNoFile = sql<boolean>`not exists (select from files where hash = ipfs_dags.root)`;

/** Of a root of before this time, unless it is a file. */
const isLeft = (beforeMs: number) => sql`touched_ms < ${beforeMs} and (not complete or ${isNoFile})`;

/** Unfinished roots, and complete ones that became no file: of these a bounded number is looked at in each round, in the order of their names. */
function createTidying(db: Kysely<Schema>): BlockIndex['tidy'] {
  let after = '';
  return async (beforeMs) => {
    const unfinished = await db
      .selectFrom('ipfs_dags')
      .select('root')
      .where('complete', '=', false)
      .where('touched_ms', '<', beforeMs)
      .limit(TIDIED.unfinished)
      .execute();
    const complete = await db
      .selectFrom('ipfs_dags')
      .select(['root', sql<boolean>`touched_ms < ${beforeMs} and ${isNoFile}`.as('isAbandoned')])
      .where('complete', '=', true)
      .where('root', '>', after)
      .orderBy('root')
      .limit(TIDIED.complete)
      .execute();
    after = complete.length < TIDIED.complete ? '' : complete.at(-1)!.root;
    const abandoned = complete.filter(({ isAbandoned }) => isAbandoned);
    // Each by itself, since it may have many blocks; and only as long as nobody has begun with it again.
    for (const { root } of [...unfinished, ...abandoned])
      await sql`delete from ipfs_dags where root = ${root} and ${isLeft(beforeMs)}`.execute(db);
  };
}

const letGoOf = (root: string) =>
  new AppError(
    'IPFS_TIMEOUT',
    `the blocks of ${root} took too long, and those here were let go of; try again`,
  );

function createCompleting(db: Kysely<Schema>, now: () => number): BlockIndex['complete'] {
  return async (root, cid) => {
    await db.transaction().execute(async (trx) => {
      // Whoever tidies up waits from here on.
      const { rows } = await sql`select from ipfs_dags where root = ${root} for update`.execute(trx);
      if (rows.length === 0) throw letGoOf(cid);
      await sql`insert into ipfs_dags as old (root, complete, touched_ms) values (${cid}, true, ${now()})
        on conflict (root) do update set
          complete = true, touched_ms = greatest(excluded.touched_ms, old.touched_ms)`.execute(trx);
      if (root === cid) return;
      await sql`insert into ipfs_blocks (block, root) select block, ${cid} from ipfs_blocks where root = ${root}
        on conflict do nothing`.execute(trx);
      await trx.deleteFrom('ipfs_dags').where('root', '=', root).execute();
    });
  };
}

export function createBlockIndex(db: Kysely<Schema>, now: () => number): BlockIndex {
  return {
    async begin(root) {
      await sql`insert into ipfs_dags as old (root, complete, touched_ms) values (${root}, false, ${now()})
        on conflict (root) do update set touched_ms = greatest(excluded.touched_ms, old.touched_ms)`.execute(
        db,
      );
    },
    async add(root, digests) {
      for (let at = 0; at < digests.length; at += ROWS) {
        const some = digests.slice(at, at + ROWS);
        const nowMs = now();
        await sql`
          with renewed as (
            update ipfs_dags set touched_ms = ${nowMs} where root = ${root} and touched_ms < ${nowMs - RENEWED_MS}
          )
          insert into ipfs_blocks (block, root)
          select block, ${root} from unnest(${bytesOf(some)}::bytea[]) as block
          on conflict do nothing`.execute(db);
        await spare(db, some);
      }
    },
    renewing(...roots) {
      let renewedMs = now();
      return async () => {
        const nowMs = now();
        if (nowMs - renewedMs < RENEWED_MS) return;
        renewedMs = nowMs;
        await sql`update ipfs_dags set touched_ms = ${nowMs}
          where root = any(${roots}::text[]) and touched_ms < ${nowMs}`.execute(db);
      };
    },
    complete: createCompleting(db, now),
    async isComplete(cid) {
      const row = await db
        .selectFrom('ipfs_dags')
        .select('complete')
        .where('root', '=', cid)
        .executeTakeFirst();
      return row?.complete ?? false;
    },
    async drop(root, beforeMs) {
      const which = beforeMs === undefined ? sql`true` : isLeft(beforeMs);
      await sql`delete from ipfs_dags where root = ${root} and ${which}`.execute(db);
    },
    async abandon(root) {
      await sql`delete from ipfs_dags where root = ${root} and not complete`.execute(db);
    },
    tidy: createTidying(db),
  };
}
