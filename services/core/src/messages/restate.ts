import { isEarlierStatement } from '@skerry/protocol';
import { sql } from 'kysely';
import type { Writer } from '../db/copy.ts';
import type { Schema } from '../db/schema.ts';
import type { Decision } from './accepted.ts';
import type { Candidate, Judged } from './judged.ts';
import { fieldsOfAccepted, fieldsOfRow, keyOfRow } from './statement.ts';
import { acceptStored, type StoredMessage } from './stored.ts';

/** For a moment within the transaction: nobody sees it. */
const TAKEN_BACK: Decision & { status: 'pending' } = {
  status: 'pending',
  reason: { code: 'CONTENT_NOT_FOUND', message: 'an earlier statement of this message takes its place' },
};

const noFile = async () => undefined;

/** Messages of the batch that are kept with a later statement of what nothing covers (protocol's isEarlierStatement). */
async function findLaterStatements(
  { trx }: Writer<Schema>,
  batch: readonly Candidate[],
): Promise<StoredMessage[]> {
  const uncovered = new Map(
    batch.flatMap(({ accepted }) =>
      accepted.message.form === 'envelope' ? [] : [[accepted.message.itemHash, accepted] as const],
    ),
  );
  if (uncovered.size === 0) return [];
  const rows = await trx
    .selectFrom('messages')
    .selectAll()
    .where('item_hash', '=', sql<string>`any(${[...uncovered.keys()]})`)
    .where('form', '<>', 'envelope')
    .where('status', '<>', 'forgotten')
    .orderBy('item_hash')
    .execute();
  return rows.filter((row) => {
    const accepted = uncovered.get(row.item_hash)!;
    const theirs = { ...fieldsOfAccepted(accepted), notedMs: accepted.message.notedMs ?? null };
    return (
      row.sender === accepted.message.sender &&
      isEarlierStatement(theirs, { ...fieldsOfRow(row), notedMs: row.noted_ms })
    );
  });
}

/**
 * What is to be taken back before the batch is judged: messages of which the batch brings an earlier statement. Rows that
 * are in force come as steps to `pending`, so that lists, labels and effects lose the later statement whole.
 */
export async function restate(
  writer: Writer<Schema>,
  batch: readonly Candidate[],
): Promise<{ readonly restated: ReadonlySet<string>; readonly steps: readonly Judged[] }> {
  const rows = await findLaterStatements(writer, batch);
  const inForce = rows.filter(({ status }) => status === 'processed');
  const steps = await Promise.all(
    inForce.map(async (row) => ({
      accepted: await acceptStored(row, noFile),
      outcome: TAKEN_BACK,
      before: row.status,
      kept: keyOfRow(row),
      shape: row.shape,
      decideByMs: row.decide_by_ms,
      dependencies: [],
    })),
  );
  return { restated: new Set(rows.map((row) => row.item_hash)), steps };
}

/** Rows that were written once in this transaction are not written again with the next ones. */
export const forgetRewritten = ({ trx }: Writer<Schema>) => sql`delete from pg_temp.rewritten`.execute(trx);
