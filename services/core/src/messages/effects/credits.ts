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
import type { Effect, EffectWriter } from './effect.ts';

const goneOf = (effects: readonly Pick<Effect, 'accepted' | 'undo'>[]) =>
  effects.filter(({ undo }) => undo).map(({ accepted }) => accepted.message.itemHash);

const made = <K extends Change['kind']>(effects: readonly Effect<K>[]) => effects.filter(({ undo }) => !undo);

/** What costs something, for as long as its message is in force. */
export const writeResources: EffectWriter<'resource'> = async (effects, { trx }) => {
  const gone = goneOf(effects);
  if (gone.length > 0) await deleteResources(trx, gone);
  const rows = made(effects).map(({ accepted: { message, owner }, change: { resource } }) => ({
    itemHash: message.itemHash,
    owner,
    time: message.time,
    resource,
  }));
  if (rows.length > 0) await insertResources(trx, rows);
};

/** Purchases and expenses that trusted publishers signed. */
export const writeCredits: EffectWriter<'credit'> = async (effects, { trx }) => {
  const gone = goneOf(effects);
  if (gone.length > 0) await deleteEntries(trx, gone);
  const rows = made(effects).flatMap(({ accepted: { message, owner }, change: { entries } }) =>
    entries.map((entry) => ({ ...entry, itemHash: message.itemHash, time: message.time, publisher: owner })),
  );
  if (rows.length > 0) await insertEntries(trx, rows);
};

export const writeCreditNotices: EffectWriter<'credit_notice'> = async (effects, { trx }) => {
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

export const writeCreditPrices: EffectWriter<'credit_prices'> = async (_effects, { trx }) =>
  rewritePrices(trx);
