import type { MessageStatus, SyncKey } from '@skerry/protocol';
import type { Accepted, Verdict } from '../accepted.ts';
import type { StoredMessage } from '../stored.ts';

/**
 * What is said of a message that nothing covers, against what is kept of it: an earlier word `counts`; any word `overrules`
 * what is kept, or `yields` to it.
 */
export type Weight = 'counts' | 'overrules' | 'yields';

/** A message that is put before the node: new, sent again, or in line to be decided again. */
export interface Candidate {
  readonly accepted: Accepted;
  /** Milliseconds since 1970: while it lacks something, it is pending until then, and rejected after. */
  readonly decideByMs: number;
  /** Left out: it counts. */
  readonly weight?: Weight | undefined;
  /** It is kept already, and known now to be there since another time. */
  readonly isRedated?: boolean | undefined;
}

/** A candidate with its verdict, and with what was known of it before. */
export interface Decided {
  readonly accepted: Accepted;
  readonly verdict: Verdict;
  /** null: it was not known. */
  readonly before: MessageStatus | null;
  readonly isRedated: boolean;
  /** Whether what it said is erased, as the database says it (store/schema.ts). */
  readonly erased: StoredMessage['erased'];
  /** Its text is wanted from now on, or not any more. */
  readonly isWantedAnew: boolean;
  /** null: it was not known. */
  readonly keyBefore: SyncKey | null;
  /**
   * Its tags as it is listed by them, where it is in force with others than it was: what its content says is read
   * otherwise since an upgrade.
   */
  readonly tagsBefore: readonly string[] | null;
  /** The number of its content's shape, where it was ever processed: one that is processed now gets it as it is written. */
  shape: number | null;
  readonly decideByMs: number;
  /** What the verdict hangs on (decide.ts). */
  readonly dependencies: readonly string[];
}
