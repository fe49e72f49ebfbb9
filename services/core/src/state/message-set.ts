import type { MessageStatus } from '@skerry/protocol';
import { sha256Hex } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import type { Schema } from '../store/schema.ts';

/** Only what every node must agree on: pending and rejected are what one node happens to know or lack. */
const AGREED: readonly (MessageStatus | null)[] = ['processed', 'forgotten'];

const MODULUS = 1n << 256n;

const elementOf = (itemHash: string, status: MessageStatus) =>
  BigInt(`0x${sha256Hex(`${itemHash} ${status}`)}`);

/** A message's step from one status to another; null: it was not known. */
export interface Step {
  readonly itemHash: string;
  readonly from: MessageStatus | null;
  readonly to: MessageStatus;
}

/** The sum of the elements' hashes modulo 2^256: the same for the same set, in whatever order it grew. */
export function addSteps(sum: bigint, steps: readonly Step[]): { sum: bigint; count: number } {
  let count = 0;
  let next = sum;
  for (const { itemHash, from, to } of steps) {
    if (from !== null && AGREED.includes(from)) {
      next -= elementOf(itemHash, from);
      count--;
    }
    if (AGREED.includes(to)) {
      next += elementOf(itemHash, to);
      count++;
    }
  }
  return { sum: ((next % MODULUS) + MODULUS) % MODULUS, count };
}

export const MESSAGES = 'messages';

/** Keeps the sum over all messages, in the transaction that changes their statuses. */
export async function sumSteps(trx: Transaction<Schema>, steps: readonly Step[]): Promise<void> {
  const row = await trx.selectFrom('digests').selectAll().where('name', '=', MESSAGES).executeTakeFirst();
  const { sum, count } = addSteps(BigInt(`0x${row?.sum ?? '0'}`), steps);
  const values = { sum: sum.toString(16).padStart(64, '0'), count: (row?.count ?? 0) + count };
  await trx
    .insertInto('digests')
    .values({ name: MESSAGES, ...values })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(values))
    .execute();
}
