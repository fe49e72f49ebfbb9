import { deleteReports, insertReports } from '../../measurements/write.ts';
import type { Effect, EffectWriter } from './effect.ts';

const reportOf = ({ accepted, change }: Effect<'metrics'>) => ({
  itemHash: accepted.message.itemHash,
  owner: accepted.owner,
  report: change.report,
});

/** Measurements of trusted publishers become rows of the lookup, and leave it with their message. */
export const writeMetrics: EffectWriter<'metrics'> = async (effects, { trx }) => {
  const gone = effects.filter((effect) => effect.undo);
  if (gone.length > 0) await deleteReports(trx, gone.map(reportOf));
  const made = effects.filter((effect) => !effect.undo);
  if (made.length > 0) await insertReports(trx, made.map(reportOf));
};
