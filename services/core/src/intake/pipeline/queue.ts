import { AppError, LIMITS } from '@skerry/protocol';
import type { Accepted, Verdict } from '../accepted.ts';
import { rowsOf } from '../effect.ts';
import type { Weight } from './decided.ts';
import { fieldsOfAccepted, isSameButDate } from './statement.ts';

/** Messages waiting to be written. A caller beyond it is told to come back: memory stays bounded. */
export const MAX_QUEUED = 10_000;
/** Messages in one transaction. */
export const MAX_BATCH = 2_000;
/** So many go in a transaction of their own while the one before is still being committed, whenever they have come. */
const MANY = MAX_BATCH / 2;
/** What waits, and what one transaction has, in bytes of what they say, of which memory holds up to twenty times as much. */
const BYTES_MAX = { queued: 16 * 1024 * 1024, batch: 8 * 1024 * 1024 } as const;

/**
 * The same in rows that follow from what they say, beside those of the messages themselves: an element of an aggregate has a row for
 * each field, and a few of them take as long as two thousand messages. One message that has more goes alone.
 */
export const MAX_BATCH_ROWS = 4_000;

/** A message that waits to be written, and who waits for its verdict. */
export interface Waiting {
  readonly accepted: Accepted;
  readonly isPassedOn: boolean;
  readonly weight: Weight;
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

/** Of what a message says, at most. */
const bytesOf = ({ accepted: { message, contentBytes = LIMITS.contentFileBytes } }: Waiting) =>
  message.sourceText?.length ?? (message.content === null ? 0 : contentBytes);

/** Whether what is decided of the first copy is all that there is to decide; of two dates the earlier one is taken (restate.ts). */
function saysNoMore({ accepted, weight }: Waiting, first: Waiting): boolean {
  if (accepted.message.sender !== first.accepted.message.sender) return false;
  if (first.accepted.isSkeleton && !accepted.isSkeleton) return false;
  if (weight === 'yields') return true;
  const isSaidAnew = weight === 'overrules' && first.weight !== weight;
  return !isSaidAnew && isSameButDate(fieldsOfAccepted(accepted), fieldsOfAccepted(first.accepted));
}

/** Messages that wait to be written, in the order in which they came. */
export class Queue {
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #many = Promise.withResolvers<void>();

  get length(): number {
    return this.#waiting.length;
  }

  /** Throws OVERLOADED where so much waits that nothing more should be made of what can be sent again. */
  checkRoom(): void {
    if (this.#bytes > BYTES_MAX.queued)
      throw new AppError('OVERLOADED', `more than ${BYTES_MAX.queued} bytes are waiting to be written`);
  }

  /** Throws OVERLOADED. */
  push(one: Waiting): void {
    if (this.#waiting.length >= MAX_QUEUED)
      throw new AppError('OVERLOADED', `${MAX_QUEUED} messages are waiting to be written`);
    this.#bytes += bytesOf(one);
    this.#waiting.push(one);
    if (this.#waiting.length >= MANY) this.#many.resolve();
  }

  /** Resolves once many wait. */
  whenMany(): Promise<void> {
    if (this.#waiting.length < MANY) this.#many = Promise.withResolvers<void>();
    return this.#many.promise;
  }

  /** Takes the first. Copies of one hash of which each has its own verdict, or says something of its own, go one after another. */
  takeBatch(): Waiting[] {
    const firsts = new Map<string, Waiting>();
    const isSame = (one: Waiting) => {
      const { itemHash } = one.accepted.message;
      const first = firsts.get(itemHash);
      if (first) return saysNoMore(one, first);
      firsts.set(itemHash, one);
      return true;
    };
    let [bytes, rows] = [0, 0];
    const isBeyond = (one: Waiting, index: number) => {
      const [moreBytes, moreRows] = [bytes + bytesOf(one), rows + rowsOf(one.accepted.changes)];
      const isFull = index > 0 && (moreBytes > BYTES_MAX.batch || moreRows > MAX_BATCH_ROWS);
      if (index === MAX_BATCH || isFull || !isSame(one)) return true;
      [bytes, rows] = [moreBytes, moreRows];
      return false;
    };
    const end = this.#waiting.findIndex(isBeyond);
    this.#bytes -= bytes;
    return this.#waiting.splice(0, end === -1 ? MAX_BATCH : end);
  }
}
