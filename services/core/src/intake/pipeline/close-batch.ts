import { randomUUID } from 'node:crypto';
import { prepared } from '@skerry/database';
import type { SetDigest } from '@skerry/protocol';
import { type RawBuilder, sql, type Transaction } from 'kysely';
import { numberEvents } from '../../notify/events/append.ts';
import { addSteps, keepDigest } from '../../store/message-set.ts';
import type { Schema } from '../../store/schema.ts';
import type { Standing } from '../../store/write-lock.ts';
import type { Decided } from './decided.ts';
import { lineUp } from './reconsider-queue.ts';
import { addChange, type PackedMoves, packMoves } from './set-changes.ts';
import type { SetChange } from './set-place.ts';
import type { Move } from './statement.ts';

/** What a batch did, once its rows are written. */
interface Done extends Sums {
  readonly changedKeys: readonly string[];
  /** Messages to be decided again. */
  readonly reconsider: readonly string[];
  readonly lastEvent: number;
}

/** What is known of a batch's end before its rows are written. */
interface Sums {
  /** Of all messages. */
  readonly digest: SetDigest;
  /** Undefined: none. */
  readonly packedMoves: PackedMoves | undefined;
}

export interface BatchEnd {
  /** Whether anything was put in line. */
  readonly moreInLine: boolean;
  /** Of the moves, where there are any. */
  readonly row: SetChange | undefined;
}

const stepOf = ({ accepted, before, verdict }: Decided) => ({
  itemHash: accepted.message.itemHash,
  from: before,
  to: verdict.status,
});

/** @param steps of messages from one status to another, in their order */
export const sumUp = (
  before: SetDigest,
  steps: readonly Decided[],
  moves: readonly Move[],
): Sums & { readonly moves: readonly Move[] } => ({
  moves,
  packedMoves: packMoves(moves),
  digest: addSteps(before, steps.map(stepOf)),
});

const NO_CHANGE: RawBuilder<Pick<SetChange, 'seq' | 'after'>> = sql`
  select null::bigint as seq, null::uuid as after where false`;

/** The last statement of a batch: where all stands after it. One for all, since each takes the processor from whoever reads. */
export async function closeBatch(
  trx: Transaction<Schema>,
  { lastSeq }: Standing,
  { changedKeys, reconsider, digest, packedMoves, lastEvent }: Done,
): Promise<BatchEnd> {
  const place = { mark: randomUUID(), lastEvent };
  const { begin, insert } = lineUp(changedKeys, reconsider);
  const { rows } = await sql<{
    has_lined_up: boolean;
    seq: number | null;
    after: string | null;
  }>`${prepared(changedKeys, reconsider)}
    with ${begin}, lined_up as (${insert} returning true),
    kept as (${keepDigest(digest)}),
    numbered as (${lastEvent > lastSeq ? numberEvents(lastEvent) : sql`select`}),
    changed as (${packedMoves ? addChange(packedMoves, place) : NO_CHANGE})
    select exists (select from lined_up) as has_lined_up, seq, after
    from (select) once left join changed on true`.execute(trx);
  const { has_lined_up: moreInLine, seq, after } = rows[0]!;
  return { moreInLine, row: seq === null ? undefined : { seq, after, ...place } };
}
