import { type MessageStatus, messageElement, type SetDigest, SetSum } from '@skerry/protocol';
import { type RawBuilder, sql } from 'kysely';

/** A message's step from one status to another; null: it was not known. */
export interface Step {
  readonly itemHash: string;
  readonly from: MessageStatus | null;
  readonly to: MessageStatus;
}

/** The digest of a set after its messages went from one status to another. */
export function addSteps(before: SetDigest, steps: readonly Step[]): SetDigest {
  const sum = new SetSum(before);
  for (const { itemHash, from, to } of steps) {
    const [gone, come] = [messageElement(itemHash, from), messageElement(itemHash, to)];
    if (gone !== undefined) sum.remove(gone);
    if (come !== undefined) sum.add(come);
  }
  return sum.digest();
}

export const MESSAGES = 'messages';

/** As long as there are none. */
export const NO_MESSAGES: SetDigest = new SetSum().digest();

/** Keeps the sum over all messages. */
export const keepDigest = ({ count, digest }: SetDigest): RawBuilder<unknown> =>
  sql`update digests set sum = ${digest}, count = ${count}::bigint where name = ${MESSAGES}`;
