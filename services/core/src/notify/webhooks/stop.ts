import type { ErrorCode } from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema, VerdictReason } from '../../store/schema.ts';
import { killDeliveries } from './delivery/deliveries.ts';
import { lockPlanner, raiseVersion } from './endpoints.ts';

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  WEBHOOK_GONE: 'its endpoint returned 410',
  WEBHOOK_FAILING: 'its endpoint accepted nothing for four days',
  WEBHOOK_NOT_ACTIVE: 'its owner paused it',
};

export const stopReason = (code: ErrorCode): VerdictReason => ({
  code,
  message: SENTENCES[code] ?? code,
});

/**
 * Pauses or disables an active webhook: nothing is planned for it from here on, and its place in the log is kept. What
 * waits for a disabled one is dead, since nobody wants it.
 */
export const stopWebhook = (db: Kysely<Schema>, ...what: Stop): Promise<void> =>
  db.transaction().execute((trx) => stopWebhookIn(trx, ...what));

type Stop = readonly [number: number, status: 'paused' | 'disabled', code: ErrorCode, nowMs: number];

/** The same in a transaction that the caller has begun. */
export async function stopWebhookIn(
  trx: Transaction<Schema>,
  ...[number, status, code, nowMs]: Stop
): Promise<void> {
  const { last_seq } = await lockPlanner(trx);
  const version = await raiseVersion(trx);
  const reason = JSON.stringify(stopReason(code));
  const { numAffectedRows } = await sql`
    update webhooks set status = ${status}, reason = ${reason}::jsonb, version = ${version}, updated_ms = ${nowMs},
      behind_seq = coalesce(behind_seq, ${last_seq})
    where number = ${number} and status = 'active'`.execute(trx);
  if (numAffectedRows === 0n || status === 'paused') return;
  const waiting = sql<boolean>`webhook = ${number} and state = 'waiting'`;
  await killDeliveries(trx, waiting, stopReason(code), nowMs);
}
