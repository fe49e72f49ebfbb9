import { creditKey } from '../credits/afford.ts';
import {
  type Accepted,
  type Decision,
  type Facts,
  forgotten,
  type MessageHead,
  rejected,
} from './accepted.ts';
import { isAuthorized, SECURITY_KEY } from './permissions.ts';

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

/**
 * Whether `sender` may do, at `time`, what `target` is: write it in its owner's name. Forgetting and changing a message
 * ask for the same permission as writing it.
 */
export function maySpeakFor(
  facts: Facts,
  target: Pick<MessageHead, 'type' | 'owner' | 'subject' | 'channel' | 'contentType'>,
  sender: { readonly sender: string; readonly chain: string },
  time: number,
): boolean {
  if (sender.sender === target.owner) return true;
  const aggregateKey = aggregateKeyOf(target);
  if (aggregateKey === SECURITY_KEY) return false;
  const { type, channel, contentType } = target;
  const act = { sender: sender.sender, chain: sender.chain, type, channel, contentType, aggregateKey };
  return isAuthorized(facts.authorizations(target.owner, time), act);
}

/** What becomes of a message, given the world. Pure, and the same on every node that knows the same messages. */
export function decideMessage(accepted: Accepted, facts: Facts): Decision {
  const { message, owner } = accepted;
  if (!maySpeakFor(facts, headOf(accepted), message, message.time)) {
    return rejected(
      'NOT_PERMITTED',
      `${message.sender} had no permission of ${owner} for this at the message's time`,
    );
  }
  const decision = accepted.decide(facts);
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
