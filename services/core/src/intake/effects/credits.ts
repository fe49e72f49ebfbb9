import { type CreditNotice, effectiveTime, type LedgerEntry } from '@skerry/protocol';
import { sql } from 'kysely';
import { findAllCharged, findLater } from '../../state/credits/afford.ts';
import {
  deleteEntries,
  deleteNotices,
  deleteResources,
  insertEntries,
  insertNotices,
  insertResources,
  isPublisher,
  type Resource,
  rewritePrices,
  type Touched,
} from '../../state/credits/write.ts';
import { creditKey, securityKey } from '../../store/dependency-keys.ts';
import { Effect, hashOf, made, undone, type Writing } from '../effect.ts';
import { fileEffect } from './files.ts';

/** Of what one owner has after a change of their credit so many are put in line at once: there may be any number. */
const LATER_MAX = 1_000;

/** Where there is more, all that hangs on the owner's credit is decided again, a page at a time. */
async function reconsiderLater(
  { trx, changedKeys, reconsider }: Writing,
  stamps: Parameters<typeof findLater>[1],
): Promise<void> {
  for (const [owner, hashes] of await findLater(trx, stamps, LATER_MAX))
    if (hashes.length === LATER_MAX) changedKeys.add(creditKey(owner));
    else for (const hash of hashes) reconsider.add(hash);
}

/** What costs something, for as long as its message is in force. */
export const resourceEffect = new Effect<Resource>({
  compared: { part: 'credits', rows: sql`select to_jsonb(r)::text as r from credit_resources r` },
  // A file is charged by its size.
  after: [fileEffect],
  isByDate: () => true,
  async write(steps, writing) {
    const { trx } = writing;
    const gone = undone(steps).map(hashOf);
    if (gone.length > 0) await deleteResources(trx, gone);
    const rows = made(steps).map(({ message, owner, data }) => ({
      itemHash: message.itemHash,
      owner,
      time: effectiveTime(message),
      resource: data,
    }));
    if (rows.length > 0) await insertResources(trx, rows);
    const stamps = steps.map(({ message, owner }) => ({
      owner,
      time: effectiveTime(message),
      itemHash: message.itemHash,
    }));
    await reconsiderLater(writing, stamps);
  },
});

type Entries = readonly LedgerEntry[];

/** Since when whose balance may be another one: of an entry with the same key in another message, too. */
async function stampsOf(trx: Writing['trx'], touched: readonly Touched[]) {
  const keys = touched.map(({ key }) => key);
  const { rows } = await sql<{ owner: string; time: number }>`
    select owner, min("time") as "time" from credit_entries where key = any(${keys}::text[]) group by owner`.execute(
    trx,
  );
  return [...rows, ...touched].map(({ owner, time }) => ({ owner, time, itemHash: '' }));
}

/** Purchases and expenses that trusted publishers signed. Those of anybody else change nothing, so nothing is decided again for them. */
export const creditEffect = new Effect<Entries>({
  compared: { part: 'credits', rows: sql`select to_jsonb(e)::text as r from credit_entries e` },
  isByTrust: true,
  rowsOf: (entries) => entries.length,
  async write(steps, writing) {
    const { trx } = writing;
    const gone = undone(steps).map(hashOf);
    const removed = gone.length > 0 ? await deleteEntries(trx, gone) : [];
    const rows = made(steps).flatMap(({ message, owner, data }) =>
      data.map((entry) => ({ ...entry, itemHash: message.itemHash, time: message.time, publisher: owner })),
    );
    const added = rows.length > 0 ? await insertEntries(trx, rows) : [];
    if (removed.length + added.length === 0) return;
    await reconsiderLater(writing, await stampsOf(trx, [...removed, ...added]));
  },
});

/** That an owner's credit is low or used up. */
export const noticeEffect = new Effect<CreditNotice>({
  compared: { part: 'credits', rows: sql`select to_jsonb(n)::text as r from credit_notices n` },
  isByTrust: true,
  async write(steps, { trx, changedKeys }) {
    const gone = undone(steps).map(hashOf);
    const before = gone.length > 0 ? await deleteNotices(trx, gone) : [];
    const rows = made(steps).map(({ message, owner, data }) => ({
      itemHash: message.itemHash,
      publisher: owner,
      time: message.time,
      notice: data,
    }));
    const now = rows.length > 0 ? await insertNotices(trx, rows) : [];
    // Who may stop an owner's instances is a permission like others.
    for (const owner of [...before, ...now]) changedKeys.add(securityKey(owner));
  },
});

/** Prices are those of an aggregate of a trusted publisher; anybody may write one of that name. Where others are trusted, trust/ makes them anew. */
export const priceEffect = new Effect<undefined>({
  async write(steps, { trx, reconsider }) {
    const owners = steps.map(({ owner }) => owner);
    if (!(await isPublisher(trx, owners)) || !(await rewritePrices(trx))) return;
    for (const hash of await findAllCharged(trx)) reconsider.add(hash);
  },
});
