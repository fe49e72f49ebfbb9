import type { MetricsReport } from '@skerry/protocol';
import { sql } from 'kysely';
import { deleteReports, insertReports } from '../../state/measurements/write.ts';
import { Effect, made, type Step, undone } from '../effect.ts';

const reportOf = ({ message, owner, data }: Step<MetricsReport>) => ({
  itemHash: message.itemHash,
  owner,
  report: data,
});

/** Measurements of trusted publishers become rows of the lookup, and leave it with their message. */
export const metricsEffect = new Effect<MetricsReport>({
  rowsOf: ({ core, compute }) => core.length + compute.length,
  compared: {
    part: 'measurements',
    rows: sql`select row(item_hash, owner)::text as r from metrics_messages`,
  },
  isByTrust: true,
  async write(steps, { trx }) {
    const gone = undone(steps);
    if (gone.length > 0) await deleteReports(trx, gone.map(reportOf));
    const fresh = made(steps);
    if (fresh.length > 0) await insertReports(trx, fresh.map(reportOf));
  },
});
