import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import type { EventDraft } from '../../events/append.ts';
import type { Accepted, Change } from '../accepted.ts';

/** A change that a message makes because it is processed now, or that is taken back because it is not any more. */
export interface Effect<K extends Change['kind'] = Change['kind']> {
  readonly accepted: Accepted;
  readonly change: Extract<Change, { kind: K }>;
  readonly undo: boolean;
}

/** What the writers of one transaction share. */
export interface Writing {
  readonly trx: Transaction<Schema>;
  /** Addresses whose allocations count. */
  readonly schedulers: ReadonlySet<string>;
  /** Events to append, in order. */
  readonly events: EventDraft[];
  /** Keys of `dependencies` that changed: what hangs on them is decided again. */
  readonly changedKeys: Set<string>;
  /** Messages to decide again, whatever they hang on. */
  readonly reconsider: Set<string>;
}

/** Writes the effects of one kind of change for a whole batch. The batch's message rows are written already. */
export type EffectWriter<K extends Change['kind']> = (
  effects: readonly Effect<K>[],
  writing: Writing,
) => Promise<void>;

/** Columns for `unnest`, from rows. */
export const columnOf = <Row, T>(rows: readonly Row[], read: (row: Row) => T): T[] => rows.map(read);
