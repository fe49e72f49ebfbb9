import type { MessageStatus } from '@skerry/protocol';
import {
  type CreditNotice,
  type ErrorCode,
  type LedgerEntry,
  type MetricsReport,
  ownerOf,
  type Program,
  type ProgramRun,
  type VerifiedMessage,
} from '@skerry/protocol';
import type { Resource } from '../credits/write.ts';
import type { VerdictReason } from '../db/schema.ts';
import type { InstanceFold } from '../instances/fold.ts';
import type { Contents, MessageType } from './contents.ts';
import type { SecurityElement } from './permissions.ts';

/** What a message must know of the world before it can be decided. */
export interface Needs {
  /** Item hashes of messages that it speaks of. */
  readonly messages?: readonly string[];
  readonly files?: readonly string[];
}

/** What others may know of a message: enough to judge what refers to it. */
export interface MessageHead {
  readonly itemHash: string;
  readonly type: string;
  readonly contentType: string | null;
  readonly channel: string | null;
  readonly subject: string | null;
  readonly chain: string;
  readonly sender: string;
  readonly owner: string;
  /** Whether its content was read: before, nobody knows on whose behalf it speaks. */
  readonly isRead: boolean;
  readonly status: MessageStatus;
}

/** The world as of one transaction, earlier messages of the same batch included. */
export interface Facts {
  message(hash: string): MessageHead | undefined;
  hasFile(hash: string): boolean;
  /** What an owner's `security` aggregate ever permitted. */
  security(owner: string): readonly SecurityElement[];
  /** The FORGET messages in force that name this message. */
  forgottenBy(hash: string): readonly string[];
  /** Whether anything is refused for want of credit. */
  readonly isCreditEnforced: boolean;
  /** Why the owner has not the credit for what the message makes; undefined where there is enough. */
  shortageOf(itemHash: string): string | undefined;
  /** Whether a credit publisher may stop instances of an owner whose credit is used up. */
  mayStop(sender: string, owner: string, time: number): boolean;
}

/** A blob that is at hand, and what it is. */
export interface UploadedFile {
  readonly hash: string;
  readonly sizeBytes: number;
  readonly contentType: string;
}

/** What a processed message does to the state. `undo` of the same changes takes it back. */
export type Change =
  | { readonly kind: 'file'; readonly file: UploadedFile }
  | { readonly kind: 'pin'; readonly fileHash: string }
  | { readonly kind: 'instance'; readonly instanceId: string; readonly fold: InstanceFold }
  | {
      readonly kind: 'aggregate';
      readonly key: string;
      readonly content: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'amend'; readonly original: string }
  | { readonly kind: 'program'; readonly program: Program }
  | { readonly kind: 'runs'; readonly runs: readonly ProgramRun[] }
  | { readonly kind: 'metrics'; readonly report: MetricsReport }
  | { readonly kind: 'resource'; readonly resource: Resource }
  | { readonly kind: 'credit'; readonly entries: readonly LedgerEntry[] }
  | { readonly kind: 'credit_notice'; readonly notice: CreditNotice }
  | { readonly kind: 'credit_prices' }
  | { readonly kind: 'forget'; readonly targets: readonly string[] };

export type Decision =
  | { readonly status: 'processed' }
  | { readonly status: 'pending'; readonly reason: VerdictReason }
  | { readonly status: 'rejected'; readonly reason: VerdictReason }
  | { readonly status: 'forgotten'; readonly reason: VerdictReason };

export const PROCESSED: Decision = { status: 'processed' };
export const pending = (code: ErrorCode, message: string): Decision => ({
  status: 'pending',
  reason: { code, message },
});
export const rejected = (code: ErrorCode, message: string): Decision => ({
  status: 'rejected',
  reason: { code, message },
});
export const forgotten = (message: string): Decision => ({
  status: 'forgotten',
  reason: { code: 'MESSAGE_FORGOTTEN', message },
});

/** A message that passed everything decidable without I/O. */
export interface Accepted {
  readonly message: VerifiedMessage;
  /** On whose behalf: the sender, unless the content names somebody else. */
  readonly owner: string;
  /**
   * The one thing that it speaks of, for finding everything that speaks of it: an instance id, a file, owner and key of
   * an aggregate, or whatever a POST refers to (of an amend: the post).
   */
  readonly subject: string | null;
  /** The type of a POST, or null. */
  readonly contentType: string | null;
  readonly tags: readonly string[];
  readonly needs: Needs;
  /** What it does once it is processed. */
  readonly changes: readonly Change[];
  /**
   * Pure. That the sender may speak for `owner`, and that nobody forgot the message, is judged elsewhere (verdict.ts).
   * @param message as it is judged: when it was noted may be known better than when it was read
   */
  decide(facts: Facts, message: VerifiedMessage): Decision;
}

/** One kind of message: says what it will need and do. One file each in `kinds/`. Throws AppError for what can never be. */
export type MessageKind<T extends MessageType = MessageType> = (
  message: VerifiedMessage,
  content: Contents[T],
) => Accepted;

/** An accepted message with what most kinds have in common filled in. */
export function accept(message: VerifiedMessage, own: Partial<Omit<Accepted, 'message'>>): Accepted {
  return {
    message,
    owner: ownerOf(message.sender, message.content ?? {}),
    subject: null,
    contentType: null,
    tags: [],
    needs: {},
    changes: [],
    decide: () => PROCESSED,
    ...own,
  };
}
