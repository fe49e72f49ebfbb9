import {
  aggregateKeyOf,
  effectiveTime,
  findRefusal,
  isLate,
  type Refusal,
  SECURITY_KEY,
  type VerifiedMessage,
} from '@skerry/protocol';
import { creditKey, fileKey, messageKey, securityKey } from '../../store/dependency-keys.ts';
import {
  type Accepted,
  type Facts,
  forgotten,
  isRead,
  type MessageHead,
  rejected,
  type Verdict,
} from '../accepted.ts';
import { resourceEffect } from '../effects/credits.ts';

export const headOf = ({ message, owner, subject, contentType }: Accepted): MessageHead => ({
  itemHash: message.itemHash,
  type: message.type,
  contentType,
  channel: message.channel,
  subject,
  chain: message.chain,
  sender: message.sender,
  owner,
  isRead: isRead(message),
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
    ? `${time}, when a core node first recorded the message: its timestamp is more than ten minutes older`
    : `${time}, the message's time`;
  if (refusal.kind === 'unpermitted')
    return `${message.sender} had no permission from ${owner} for this at ${which}`;
  return `${owner} revoked the permission of ${message.sender} for this at ${isoOf(refusal.at)}, within ten minutes after ${which}`;
}

type Acted = Pick<MessageHead, 'type' | 'owner' | 'subject' | 'channel' | 'contentType'>;

/** Why the sender of a message may not write it: nearly all write for themselves. */
const whyNotOwn = (facts: Facts, accepted: Accepted): string | undefined =>
  accepted.message.sender === accepted.owner
    ? undefined
    : whyNotPermitted(facts, headOf(accepted), accepted.message);

/**
 * Why the sender of `message` may not do what `target` is, write it in its owner's name; undefined where it may.
 * Forgetting and changing a message ask for the same permission as writing it.
 */
export function whyNotPermitted(facts: Facts, target: Acted, message: VerifiedMessage): string | undefined {
  const { sender, chain } = message;
  if (sender === target.owner) return undefined;
  const aggregateKey = aggregateKeyOf(target);
  if (aggregateKey === SECURITY_KEY) return `only its owner may change the aggregate ${SECURITY_KEY}`;
  const { type, channel, contentType } = target;
  const act = { sender, chain, type, channel, contentType, aggregateKey };
  const refusal = findRefusal(facts.security(target.owner), act, effectiveTime(message));
  return refusal && explainRefusal(refusal, target.owner, message);
}

/** What becomes of a message, given the world. Pure, and the same on every node that knows the same messages. */
export function decideMessage(accepted: Accepted, facts: Facts): Verdict {
  const { message } = accepted;
  const refusal = whyNotOwn(facts, accepted);
  if (refusal !== undefined) return rejected('NOT_PERMITTED', refusal);
  const verdict = accepted.decide(facts, message);
  if (verdict.status === 'rejected' || verdict.status === 'forgotten') return verdict;
  // Also while it lacks something: whether that ever comes makes no difference any more.
  const forgetting = facts.forgottenBy(message.itemHash);
  if (forgetting.length > 0) return forgotten(`forgotten by ${forgetting.join(', ')}`);
  if (verdict.status === 'pending') return verdict;
  const shortage = facts.shortageOf(message.itemHash);
  return shortage === undefined ? verdict : rejected('CREDIT_INSUFFICIENT', shortage);
}

/** Of most messages. */
const NOTHING: readonly string[] = [];

/** Whether nothing but a FORGET of it can change its verdict: facts say the same of it, whatever else is there. */
export const hangsOnNothing = ({ message, owner, needs, changes }: Accepted): boolean =>
  !needs.messages && !needs.files && owner === message.sender && !resourceEffect.isIn(changes);

/** What the verdict hangs on: when one of these changes, the message is decided again. */
export function dependenciesOf(accepted: Accepted, facts: Facts): readonly string[] {
  if (hangsOnNothing(accepted)) return NOTHING;
  const { message, owner, needs } = accepted;
  const hasCost = facts.isCreditEnforced && resourceEffect.isIn(accepted.changes);
  const keys = (needs.messages ?? []).map(messageKey);
  keys.push(...(needs.files ?? []).map(fileKey));
  if (hasCost) keys.push(creditKey(owner));
  const owners = [owner, ...(needs.messages ?? []).map((hash) => facts.message(hash)?.owner)];
  for (const other of new Set(owners)) {
    if (other !== undefined && other !== message.sender) keys.push(securityKey(other));
  }
  return keys;
}
