import type { MessageStatus, SyncKey } from '@skerry/protocol';
import type { VerdictReason } from '../db/schema.ts';
import type { Accepted } from './accepted.ts';

/** What became of a message, and why. */
export interface Outcome {
  readonly status: MessageStatus;
  readonly reason: VerdictReason | null;
}

/** A message that is put before the node: new, sent again, or in line to be decided again. */
export interface Candidate {
  readonly accepted: Accepted;
  /** Milliseconds since 1970: while it lacks something, it is pending until then, and rejected after. */
  readonly decideByMs: number;
  /** What is said of it that nothing covers takes the place of what is kept, also where that was said earlier. */
  readonly overrules?: boolean | undefined;
  /** It is kept already, and known now to be there since another time. */
  readonly isRedated?: boolean | undefined;
}

/** A candidate after the verdict, with what was known of it before. */
export interface Judged {
  readonly accepted: Accepted;
  readonly outcome: Outcome;
  /** null: it was not known. */
  readonly before: MessageStatus | null;
  readonly isRedated: boolean;
  /** Its key as it was kept; null: it was not known. */
  readonly kept: SyncKey | null;
  /** The number of its content's shape, where it was ever processed. */
  readonly shape: number | null;
  readonly decideByMs: number;
  /** What the verdict hangs on (verdict.ts). */
  readonly dependencies: readonly string[];
}
