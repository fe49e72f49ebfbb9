import { type MessageStatus, messageElement, type SetDigest, SetSum } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import type { Schema } from '../store/schema.ts';

/** A message's step from one status to another; null: it was not known. */
export interface Step {
  readonly itemHash: string;
  readonly from: MessageStatus | null;
  readonly to: MessageStatus;
}

/** The digest of a set after its messages went from one status to another. @param before undefined: of an empty set */
export function addSteps(before: SetDigest | undefined, steps: readonly Step[]): SetDigest {
  const sum = new SetSum(before);
  for (const { itemHash, from, to } of steps) {
    const [gone, come] = [messageElement(itemHash, from), messageElement(itemHash, to)];
    if (gone !== undefined) sum.remove(gone);
    if (come !== undefined) sum.add(come);
  }
  return sum.digest();
}

export const MESSAGES = 'messages';

/** Keeps the sum over all messages, in the transaction that changes their statuses. */
export async function sumSteps(trx: Transaction<Schema>, steps: readonly Step[]): Promise<void> {
  const row = await trx.selectFrom('digests').selectAll().where('name', '=', MESSAGES).executeTakeFirst();
  const { digest: sum, count } = addSteps(row && { count: row.count, digest: row.sum }, steps);
  const values = { sum, count };
  await trx
    .insertInto('digests')
    .values({ name: MESSAGES, ...values })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(values))
    .execute();
}
