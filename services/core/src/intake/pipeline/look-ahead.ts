import { isLockedOut } from '@skerry/database';
import type { Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { isOutOfTurn, lockWrites, type Standing } from '../../store/write-lock.ts';
import { hangsOnNothing } from './decide.ts';
import { decideBatch } from './decide-batch.ts';
import type { Candidate, Decided } from './decided.ts';
import { type Kept, loadKept } from './load-known.ts';
import { datedByAll } from './restate.ts';
import type { Turn } from './turn.ts';

/** Where all stands once a batch is committed. */
export interface Left extends Standing {
  /** Item hashes of its messages, and of those that are to be decided again because of them, as what they forget is. */
  readonly touched: ReadonlySet<string>;
  /** Whether nothing was known of its messages. */
  readonly wasNew: boolean;
}

export const isNew = ({ known, forgottenBy }: Kept): boolean => known.size === 0 && forgottenBy.size === 0;

/** What is known of a batch as it begins. */
export interface Begun {
  readonly standing: Standing;
  readonly kept: Kept;
  /** Where it was decided before its turn. */
  readonly decided?: readonly Decided[] | undefined;
  /** Resolves once the lock is there, where that is not waited for (`isOutOfTurn`). */
  readonly locking?: Promise<unknown> | undefined;
}

const isAsLeft = ({ lastSeq, digest, timeline }: Standing, left: Left) =>
  lastSeq === left.lastSeq &&
  timeline === left.timeline &&
  digest.count === left.digest.count &&
  digest.digest === left.digest.digest;

const touches = ({ touched }: Left, batch: readonly Candidate[]) =>
  batch.some(({ accepted: { message } }) => touched.has(message.itemHash));

/**
 * Takes the lock of all who write, and reads what is kept of a batch. Where the one before it is still being written, and nothing was
 * known of that, this one is read before its turn; and where it hangs on nothing else it is decided, and its rows go behind the lock: the
 * server has them as soon as it has committed the other batch.
 *
 * What was read before its turn counts where it was nothing, and nobody came in between: a FORGET in force has changed the digest. A
 * message that has come meanwhile and is not in the digest is refused as its row is there twice, and the batch is written in parts.
 * @param statementMs what each later statement of the transaction may take
 */
export async function beginBatch(
  trx: Transaction<Schema>,
  batch: readonly Candidate[],
  nowMs: number,
  { behind, statementMs }: { readonly behind?: Left | undefined; readonly statementMs: number | undefined },
): Promise<Begun> {
  if (!behind?.wasNew) {
    // Read once the lock is there, without another way to the server and back.
    const [standing, kept] = await Promise.all([lockWrites(trx, statementMs), loadKept(trx, batch)]);
    return { standing, kept };
  }
  const kept = await loadKept(trx, batch);
  const isUntouched = isNew(kept) && !touches(behind, batch);
  if (isUntouched && batch.every(({ accepted }) => hangsOnNothing(accepted))) {
    const locking = lockWrites(trx, statementMs, behind);
    // What fails is told when it is waited for.
    locking.catch(() => {});
    const decided = await decideBatch(trx, datedByAll(batch), kept, nowMs);
    return { standing: behind, kept, decided, locking };
  }
  const standing = await lockWrites(trx, statementMs);
  const isRight = isUntouched && isAsLeft(standing, behind);
  return { standing, kept: isRight ? kept : await loadKept(trx, batch) };
}

/** So many batches are not begun before their turn once one of them was in vain: another process writes, too. */
const REST_BATCHES = 100;

/** Whether a batch is begun before its turn. */
export class LookAhead {
  #rest = 0;

  /** A batch's turn, behind the one before it where that may be. */
  follow(turn: Turn<Left>): Turn<Left> {
    if (this.#rest === 0) return turn;
    this.#rest--;
    return { ...turn, behind: undefined };
  }

  /**
   * Whether a batch failed only because it waited too long for the one before it, or another one came in between: once that is over it may
   * be written.
   */
  hasMissedTurn({ before }: Turn<Left>, error: unknown): boolean {
    if (isOutOfTurn(error)) this.#rest = REST_BATCHES;
    return before !== undefined && (isLockedOut(error) || isOutOfTurn(error));
  }
}
