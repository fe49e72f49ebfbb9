import {
  type ErrorCode,
  type MessageStatus,
  ownerOf,
  type SecurityElement,
  type VerifiedMessage,
} from '@skerry/protocol';
import { shapeKeyOf } from '../state/lists/shape.ts';
import type { VerdictReason } from '../store/schema.ts';
import type { Change, Effect } from './effect.ts';

/** What a message must know of the world before it can be decided. */
export interface Needs {
  /** Item hashes of messages that it speaks of. */
  readonly messages?: readonly string[];
  readonly files?: readonly string[];
  /** The instance that it would stop: a credit publisher may do so, too (Facts.mayStop). */
  readonly stops?: string;
  /** The instance that it would start: a client is refused that where its owner's credit is used up (start-check.ts). */
  readonly starts?: string;
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
  /** Whether a credit publisher may stop instances of an owner whose credit is used up. @param time of the stop, by its own date */
  mayStop(sender: string, owner: string, time: number): boolean;
}

/** What becomes of a message, and why; in force it needs no reason. */
export interface Verdict {
  readonly status: MessageStatus;
  readonly reason: VerdictReason | null;
}

export const PROCESSED: Verdict = { status: 'processed', reason: null };
export const pending = (code: ErrorCode, message: string): Verdict => ({
  status: 'pending',
  reason: { code, message },
});
export const rejected = (code: ErrorCode, message: string): Verdict => ({
  status: 'rejected',
  reason: { code, message },
});
export const forgotten = (message: string): Verdict => ({
  status: 'forgotten',
  reason: { code: 'MESSAGE_FORGOTTEN', message },
});

/** Whether what a message says is here: also one whose content is not kept beside its text was read. */
export const isRead = ({ content, sourceText }: Pick<VerifiedMessage, 'content' | 'sourceText'>): boolean =>
  content !== null || sourceText !== null;

/** Whether a message was rejected for what it says: that was read, also where it came as a file, of which nothing is kept. */
export const isJudged = ({ status, reason }: Verdict): boolean =>
  status === 'rejected' && reason !== null && reason.code !== 'CONTENT_NOT_FOUND';

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
  /** What its content is made of (state/lists/shapes.ts): found before it is its turn to be written, for which others wait. */
  readonly shapeKey: string;
  readonly tags: readonly string[];
  /** What the disk of its instance is made of; null where it makes none. */
  readonly image: string | null;
  readonly needs: Needs;
  /** Of a content that came as a file, where it was just read. */
  readonly contentBytes?: number;
  /** It is what is left of a forgotten message: nobody signed that. */
  readonly isSkeleton?: boolean;
  /** It has no date but that at which it came: what is refused now may be taken later, and is not kept meanwhile. */
  readonly isLeftIfRefused?: boolean;
  /** What it does once it is processed. */
  readonly changes: readonly Change[];
  /**
   * Pure. That the sender may speak for `owner`, and that nobody forgot the message, is judged elsewhere (decide.ts).
   * @param message as it is judged: when it was noted may be known better than when it was read
   */
  decide(facts: Facts, message: VerifiedMessage): Verdict;
}

/** What a kind says of a message; the rest is what most kinds have in common. */
export type Own<E extends Effect<unknown> = Effect<unknown>> = Partial<
  Omit<Accepted, 'message' | 'changes' | 'shapeKey'>
> & { readonly changes?: readonly Change<E>[] };

/** A type of message: how its content is read, what it needs and does, and what is particular about it. */
export interface Kind<Content, E extends Effect<unknown> = Effect<unknown>> {
  /** Reads a content of the envelope form. Throws INVALID_CONTENT, UNKNOWN_FIELD and what else can never be. */
  read(content: unknown): Content;
  /** Everything that messages of the type may do. */
  readonly effects: readonly E[];
  /** Throws AppError for what can never be. */
  accept(message: VerifiedMessage, content: Content): Own<NoInfer<E>>;
  /** Refuses what a client asks for in vain. Not asked of what nodes pass on: it is in force elsewhere. */
  checkNew?(content: Content): void;
  /** It is answered once what it puts in line is decided: who sends it and reads at once finds it done. */
  readonly isAnsweredAfterLine?: boolean;
  /** It costs nothing, but whether it holds may turn on credit that is used up. */
  readonly hangsOnCredit?: boolean;
}

/** Holds the changes of `accept` to the effects that are declared. */
export const defineKind = <Content, E extends Effect<unknown>>(kind: Kind<Content, E>): Kind<Content> => kind;

export const acceptAs = (message: VerifiedMessage, own: Own): Accepted => ({
  message,
  owner: ownerOf(message.sender, message.content ?? {}),
  subject: null,
  contentType: null,
  shapeKey: shapeKeyOf({
    type: message.type,
    contentType: own.contentType ?? null,
    content: message.content ?? {},
  }),
  tags: [],
  image: null,
  needs: {},
  changes: [],
  decide: () => PROCESSED,
  ...own,
});
