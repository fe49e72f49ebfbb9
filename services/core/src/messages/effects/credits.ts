import { effectiveTime } from '@skerry/protocol';
import { sql } from 'kysely';
import { findAllCharged, findLater } from '../../credits/afford.ts';
import {
  deleteEntries,
  deleteNotices,
  deleteResources,
  insertEntries,
  insertNotices,
  insertResources,
  rewritePrices,
} from '../../credits/write.ts';
import type { Change } from '../accepted.ts';
import type { Effect, EffectWriter, Writing } from './effect.ts';

const goneOf = (effects: readonly Pick<Effect, 'accepted' | 'undo'>[]) =>
  effects.filter(({ undo }) => undo).map(({ accepted }) => accepted.message.itemHash);

const made = <K extends Change['kind']>(effects: readonly Effect<K>[]) => effects.filter(({ undo }) => !undo);

/** What costs something, for as long as its message is in force. */
export const writeResources: EffectWriter<'resource'> = async (effects, { trx, reconsider }) => {
  const gone = goneOf(effects);
  if (gone.length > 0) await deleteResources(trx, gone);
  const rows = made(effects).map(({ accepted: { message, owner }, change: { resource } }) => ({
    itemHash: message.itemHash,
    owner,
    time: effectiveTime(message),
    resource,
  }));
  if (rows.length > 0) await insertResources(trx, rows);
  const stamps = effects.map(({ accepted: { message, owner } }) => ({
    owner,
    time: effectiveTime(message),
    itemHash: message.itemHash,
  }));
  for (const hash of await findLater(trx, stamps)) reconsider.add(hash);
};

/** Since when whose balance may be another one: of an entry with the same key in another message, too. */
async function stampsOf(trx: Writing['trx'], effects: readonly Effect<'credit'>[]) {
  const keys = effects.flatMap(({ change }) => change.entries.map(({ key }) => key));
  const { rows } = await sql<{ owner: string; time: number }>`
    select owner, min("time") as "time" from credit_entries where key = any(${keys}::text[]) group by owner`.execute(
    trx,
  );
  const own = effects.flatMap(({ accepted: { message }, change: { entries } }) =>
    entries.map(({ owner }) => ({ owner, time: message.time })),
  );
  return [...rows, ...own].map((stamp) => ({ ...stamp, itemHash: '' }));
}

/** Purchases and expenses that trusted publishers signed. */
export const writeCredits: EffectWriter<'credit'> = async (effects, { trx, reconsider }) => {
  const gone = goneOf(effects);
  if (gone.length > 0) await deleteEntries(trx, gone);
  const rows = made(effects).flatMap(({ accepted: { message, owner }, change: { entries } }) =>
    entries.map((entry) => ({ ...entry, itemHash: message.itemHash, time: message.time, publisher: owner })),
  );
  if (rows.length > 0) await insertEntries(trx, rows);
  for (const hash of await findLater(trx, await stampsOf(trx, effects))) reconsider.add(hash);
};

export const writeCreditNotices: EffectWriter<'credit_notice'> = async (effects, { trx, changedKeys }) => {
  // Who may stop an owner's instances is a permission like others.
  for (const { change } of effects) changedKeys.add(`security:${change.notice.address}`);
  const gone = goneOf(effects);
  if (gone.length > 0) await deleteNotices(trx, gone);
  const rows = made(effects).map(({ accepted: { message, owner }, change: { notice } }) => ({
    itemHash: message.itemHash,
    publisher: owner,
    time: message.time,
    notice,
  }));
  if (rows.length > 0) await insertNotices(trx, rows);
};

export const writeCreditPrices: EffectWriter<'credit_prices'> = async (_effects, { trx, reconsider }) => {
  await rewritePrices(trx);
  for (const hash of await findAllCharged(trx)) reconsider.add(hash);
};
