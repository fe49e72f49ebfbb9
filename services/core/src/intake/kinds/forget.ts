import {
  aggregateKeyOf,
  type ForgetContent,
  ownerOf,
  parseForgetContent,
  SECURITY_KEY,
  type VerifiedMessage,
} from '@skerry/protocol';
import {
  defineKind,
  type Facts,
  type MessageHead,
  PROCESSED,
  pending,
  rejected,
  type Verdict,
} from '../accepted.ts';
import { forgetEffect } from '../effects/forgets.ts';
import { whyNotPermitted } from '../pipeline/decide.ts';

/**
 * What takes a permission away hangs on none itself: two FORGETs that each took away what the other one needs would hold by who
 * came first, and three could never be settled.
 */
function mixesPermissions(
  targets: readonly MessageHead[],
  { sender }: VerifiedMessage,
  content: ForgetContent,
): boolean {
  const isOwn = [ownerOf(sender, content), ...targets.map(({ owner }) => owner)].every(
    (owner) => owner === sender,
  );
  return !isOwn && targets.some((target) => aggregateKeyOf(target) === SECURITY_KEY);
}

function decideForget(facts: Facts, message: VerifiedMessage, content: ForgetContent): Verdict {
  const targets: MessageHead[] = [];
  for (const hash of content.hashes) {
    const target = facts.message(hash);
    if (!target) return pending('FORGET_TARGET_NOT_FOUND', `there is no message ${hash} here yet`);
    if (!target.isRead)
      return pending('CONTENT_NOT_FOUND', `the content of ${hash} is not here yet, so its owner is unknown`);
    if (target.type === 'FORGET')
      return rejected('FORGET_FORGET', `${hash} is a FORGET, which cannot be forgotten`);
    const refusal = whyNotPermitted(facts, target, message);
    if (refusal !== undefined)
      return rejected('NOT_PERMITTED', `${hash} belongs to ${target.owner}: ${refusal}`);
    targets.push(target);
  }
  if (!mixesPermissions(targets, message, content)) return PROCESSED;
  return rejected(
    'NOT_PERMITTED',
    `an element of ${SECURITY_KEY} is forgotten by its owner, in a FORGET that names nothing of others`,
  );
}

/** FORGET: all of these messages, or none of them. */
export const forget = defineKind({
  read: parseForgetContent,
  effects: [forgetEffect],
  isAnsweredAfterLine: true,
  accept: (_message, content) => ({
    needs: { messages: content.hashes },
    changes: [forgetEffect.change({ targets: content.hashes })],
    decide: (facts, dated) => decideForget(facts, dated, content),
  }),
});
