import { lockForStart, mayHoldLong } from '@skerry/database';
import { CREDIT_POST, effectiveTime } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Accepted } from '../../intake/accepted.ts';
import { creditEffect, noticeEffect, resourceEffect } from '../../intake/effects/credits.ts';
import { typesWith } from '../../intake/kinds.ts';
import { acceptStored, type StoredMessage } from '../../intake/stored.ts';
import type { ReadContentFile } from '../../store/content-reader.ts';
import { creditKeyOf } from '../../store/dependency-keys.ts';
import type { Schema } from '../../store/schema.ts';
import {
  type EntryRow,
  insertEntries,
  insertNotices,
  insertResources,
  type NoticeRow,
  type ResourceRow,
  rewritePrices,
} from './write.ts';

/** Messages that are read at once. */
const MESSAGES_PER_ROUND = 500;
const TABLES = ['credit_resources', 'credit_entries', 'credit_notices', 'credit_prices'] as const;
/** Types of messages that cost something, and content types of POSTs that say what was bought and used. */
const CHARGED = typesWith(resourceEffect);
const SPOKEN_OF: readonly string[] = Object.values(CREDIT_POST);

/**
 * Fills the tables of credit where they are new, for the publishers in force (trust/). To be called before messages are
 * processed.
 */
export async function deriveCredits(
  db: Kysely<Schema>,
  readContentFile: ReadContentFile,
  isEnforced = false,
): Promise<void> {
  if (await isDerived(db)) return;
  // All or nothing: a node that is killed here begins anew.
  await db.transaction().execute(async (trx) => {
    // One of several nodes that start on one database does it; the others find it done.
    await lockForStart(trx, 'credit_derivation');
    // Contents may be in an object store that takes its time.
    await mayHoldLong(trx);
    if (await isDerived(trx)) return;
    for (const table of TABLES) await trx.deleteFrom(table).execute();
    await rewritePrices(trx);
    await readMessages(trx, readContentFile);
    await sql`
      insert into credit_derivation (publishers, enforcement)
      select coalesce(array_agg(address order by address), '{}'), ${isEnforced} from credit_publishers`.execute(
      trx,
    );
    if (isEnforced) await decideAgain(trx, isEnforced);
  });
}

/** Whether what an owner has no credit for is refused, from now on and of what is there. */
export async function enforceCredit(db: Kysely<Schema>, isEnforced: boolean): Promise<void> {
  const { numAffectedRows } = await sql`
    update credit_derivation set enforcement = ${isEnforced} where enforcement <> ${isEnforced}`.execute(db);
  if ((numAffectedRows ?? 0n) > 0n) await decideAgain(db, isEnforced);
}

/** Other publishers set other prices, and may stop what others may not. */
export async function decideCreditAgain(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql`select 1 from credit_derivation where enforcement`.execute(db);
  if (rows.length > 0) await putCreditInLine(db);
}

async function isDerived(db: Kysely<Schema>): Promise<boolean> {
  const { rows } = await sql`select 1 from credit_derivation`.execute(db);
  return rows.length > 0;
}

/** Other verdicts follow from other rules: whatever is a matter of credit is decided again. */
async function decideAgain(db: Kysely<Schema>, isEnforced: boolean): Promise<void> {
  if (isEnforced)
    await sql`
      insert into dependencies (key, item_hash)
      select ${creditKeyOf('owner')}, item_hash from messages where type = any(${CHARGED}::text[])
      on conflict do nothing`.execute(db);
  await putCreditInLine(db);
}

async function putCreditInLine(db: Kysely<Schema>): Promise<void> {
  await sql`
    insert into reconsider select item_hash from messages
    where type = any(${[...CHARGED, ...typesWith('hangsOnCredit')]}::text[]) on conflict do nothing`.execute(
    db,
  );
}

async function readMessages(db: Kysely<Schema>, readContentFile: ReadContentFile): Promise<void> {
  for (let after = ''; ; ) {
    const { rows } = await sql<StoredMessage>`
      select * from messages
      where status = 'processed' and item_hash > ${after}
        and (type = any(${CHARGED}::text[]) or content_type = any(${SPOKEN_OF}::text[]))
      order by item_hash limit ${MESSAGES_PER_ROUND}`.execute(db);
    const accepted = await Promise.all(rows.map((row) => acceptStored(row, readContentFile)));
    await insertChanges(db, accepted);
    if (rows.length < MESSAGES_PER_ROUND) return;
    after = rows.at(-1)!.item_hash;
  }
}

async function insertChanges(db: Kysely<Schema>, accepted: readonly Accepted[]): Promise<void> {
  const resources: ResourceRow[] = [];
  const entries: EntryRow[] = [];
  const notices: NoticeRow[] = [];
  for (const { message, owner, changes } of accepted) {
    const { itemHash, time } = message;
    for (const resource of resourceEffect.dataIn(changes))
      resources.push({ itemHash, time: effectiveTime(message), owner, resource });
    for (const notice of noticeEffect.dataIn(changes))
      notices.push({ itemHash, time, publisher: owner, notice });
    for (const entry of creditEffect.dataIn(changes).flat())
      entries.push({ ...entry, itemHash, time, publisher: owner });
  }
  if (resources.length > 0) await insertResources(db, resources);
  if (entries.length > 0) await insertEntries(db, entries);
  if (notices.length > 0) await insertNotices(db, notices);
}
