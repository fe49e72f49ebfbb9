import type { VerifiedMessage } from '@skerry/protocol';
import type { RawBuilder, Selectable, Transaction } from 'kysely';
import type { EventDraft } from '../notify/events/append.ts';
import type { Schema } from '../store/schema.ts';

/** What one message does to the state once it is processed; with `undo` the same is taken back. */
export interface Change<E extends Effect<unknown> = Effect<unknown>> {
  readonly effect: E;
  readonly data: unknown;
}

/** A change that is made because its message is processed now, or taken back because it is not any more. */
export interface Step<Data> {
  readonly message: VerifiedMessage;
  readonly owner: string;
  readonly data: Data;
  readonly undo: boolean;
  /** Nothing was known of the message before, so nothing that is in force speaks of it. */
  readonly isNew: boolean;
}

/** What the effects of one transaction share. */
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
  /** What a message in force does, read from its row. */
  readonly changesOf: (row: Selectable<Schema['messages']>) => readonly Change[];
}

/** What nodes compare of an effect's tables: each row as a text `r`, with nothing that only one node knows. */
export interface ComparedRows {
  /** The part of the digest that they are in. */
  readonly part: string;
  readonly rows: RawBuilder<unknown>;
}

/** One for all: each message is asked for what it does of several sorts, and most do nothing of most. */
const NONE: readonly never[] = [];

interface EffectOptions<Data> {
  readonly compared?: ComparedRows;
  /** Written before in the same batch, since this one reads it. */
  readonly after?: readonly Effect<unknown>[];
  /** It counts only by somebody who is trusted. */
  readonly isByTrust?: boolean;
  /** Whether it follows from when its message is there. */
  isByDate?(data: Data): boolean;
  /** About how many rows follow from it, where that is not one: a batch has so many at most. */
  rowsOf?(data: Data): number;
  /** Writes a whole batch. Its message rows are written already. */
  write(steps: readonly Step<Data>[], writing: Writing): Promise<void>;
}

/** One sort of thing that messages do to the state, and how it is written. */
export class Effect<Data> {
  /** Effects of a lower stage are written before. */
  readonly stage: number;
  readonly isByTrust: boolean;
  readonly compared: ComparedRows | undefined;
  readonly #options: EffectOptions<Data>;

  constructor(options: EffectOptions<Data>) {
    const { after = [], isByTrust = false } = options;
    this.stage = 1 + Math.max(-1, ...after.map(({ stage }) => stage));
    this.isByTrust = isByTrust;
    this.compared = options.compared;
    this.#options = options;
  }

  change(data: Data): Change<this> {
    return { effect: this, data };
  }

  /** What the changes of this effect among others are about. */
  dataIn(changes: readonly Change[]): readonly Data[] {
    return this.isIn(changes)
      ? changes.flatMap(({ effect, data }) => (effect === this ? [data as Data] : []))
      : NONE;
  }

  isIn(changes: readonly Change[]): boolean {
    for (const { effect } of changes) if (effect === this) return true;
    return false;
  }

  isByDate(data: Data): boolean {
    return this.#options.isByDate?.(data) ?? false;
  }

  rowsOf(data: Data): number {
    return this.#options.rowsOf?.(data) ?? 1;
  }

  write(steps: readonly Step<Data>[], writing: Writing): Promise<void> {
    return this.#options.write(steps, writing);
  }
}

/** About how many rows follow from changes. */
export const rowsOf = (changes: readonly Change[]): number =>
  changes.reduce((sum, { effect, data }) => sum + effect.rowsOf(data), 0);

export const hashOf = ({ message }: Pick<Step<unknown>, 'message'>) => message.itemHash;
export const undone = <Data>(steps: readonly Step<Data>[]) => steps.filter(({ undo }) => undo);
export const made = <Data>(steps: readonly Step<Data>[]) => steps.filter(({ undo }) => !undo);
