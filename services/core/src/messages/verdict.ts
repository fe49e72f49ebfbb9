import { effectiveTime, isLate, type VerifiedMessage } from '@skerry/protocol';
import { creditKey } from '../credits/afford.ts';
import {
  type Accepted,
  type Decision,
  type Facts,
  forgotten,
  type MessageHead,
  rejected,
} from './accepted.ts';
import { findRefusal, type Refusal, SECURITY_KEY } from './permissions.ts';

/** Owner and key of an aggregate as one text; addresses have no line breaks. */
export const aggregateSubject = (owner: string, key: string) => `${owner}\n${key}`;

const aggregateKeyOf = ({ type, owner, subject }: Pick<MessageHead, 'type' | 'owner' | 'subject'>) =>
  type === 'AGGREGATE' && subject !== null ? subject.slice(owner.length + 1) : null;

export const headOf = ({ message, owner, subject, contentType }: Accepted): MessageHead => ({
  itemHash: message.itemHash,
  type: message.type,
  contentType,
  channel: message.channel,
  subject,
  chain: message.chain,
  sender: message.sender,
  owner,
  isRead: message.content !== null,
  status: 'processed',
});

const isoOf = (seconds: number) => {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `second ${seconds}` : date.toISOString();
};

/** Which time counted, and what stood against it. */
function explainRefusal(refusal: Refusal, owner: string, message: VerifiedMessage): string {
  const time = isoOf(effectiveTime(message));
  const which = isLate(message)
    ? `${time}, when a core node first had the message: its timestamp is more than ten minutes older`
    : `${time}, the message's time`;
  if (refusal.kind === 'unpermitted')
    return `${message.sender} had no permission of ${owner} for this at ${which}`;
  return `${owner} revoked the permission of ${message.sender} for this at ${isoOf(refusal.at)}, within ten minutes of ${which}`;
}

/**
 * Why the sender of `message` may not do what `target` is, write it in its owner's name; undefined where it may.
 * Forgetting and changing a message ask for the same permission as writing it.
 */
export function whyNotPermitted(
  facts: Facts,
  target: Pick<MessageHead, 'type' | 'owner' | 'subject' | 'channel' | 'contentType'>,
  message: VerifiedMessage,
): string | undefined {
  const { sender, chain } = message;
  if (sender === target.owner) return undefined;
  const aggregateKey = aggregateKeyOf(target);
  if (aggregateKey === SECURITY_KEY) return `the aggregate ${SECURITY_KEY} is its owner's alone`;
  const { type, channel, contentType } = target;
  const act = { sender, chain, type, channel, contentType, aggregateKey };
  const refusal = findRefusal(facts.security(target.owner), act, effectiveTime(message));
  return refusal && explainRefusal(refusal, target.owner, message);
}

/** What becomes of a message, given the world. Pure, and the same on every node that knows the same messages. */
export function decideMessage(accepted: Accepted, facts: Facts): Decision {
  const { message } = accepted;
  const refusal = whyNotPermitted(facts, headOf(accepted), message);
  if (refusal !== undefined) return rejected('NOT_PERMITTED', refusal);
  const decision = accepted.decide(facts, message);
  if (decision.status === 'rejected' || decision.status === 'forgotten') return decision;
  // Also while it lacks something: whether that ever comes makes no difference any more.
  const forgetting = facts.forgottenBy(message.itemHash);
  if (forgetting.length > 0) return forgotten(`forgotten by ${forgetting.join(', ')}`);
  if (decision.status === 'pending') return decision;
  const shortage = facts.shortageOf(message.itemHash);
  return shortage === undefined ? decision : rejected('CREDIT_INSUFFICIENT', shortage);
}

/** What the verdict hangs on: when one of these changes, the message is decided again. */
export function dependenciesOf(accepted: Accepted, facts: Facts): string[] {
  const { message, owner, needs } = accepted;
  const keys = (needs.messages ?? []).map((hash) => `message:${hash}`);
  keys.push(...(needs.files ?? []).map((hash) => `file:${hash}`));
  if (facts.isCreditEnforced && accepted.changes.some(({ kind }) => kind === 'resource'))
    keys.push(creditKey(owner));
  const owners = [owner, ...(needs.messages ?? []).map((hash) => facts.message(hash)?.owner)];
  for (const other of new Set(owners)) {
    if (other !== undefined && other !== message.sender) keys.push(`security:${other}`);
  }
  return keys;
}
