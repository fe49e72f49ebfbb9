import { type ForgetContent, parseForgetContent, type VerifiedMessage } from '@skerry/protocol';
import { defineKind, type Facts, PROCESSED, pending, rejected, type Verdict } from '../accepted.ts';
import { forgetEffect } from '../effects/forgets.ts';
import { whyNotPermitted } from '../pipeline/decide.ts';

function decideForget(facts: Facts, message: VerifiedMessage, { hashes }: ForgetContent): Verdict {
  for (const hash of hashes) {
    const target = facts.message(hash);
    if (!target) return pending('FORGET_TARGET_NOT_FOUND', `there is no message ${hash} here yet`);
    if (!target.isRead)
      return pending('CONTENT_NOT_FOUND', `the content of ${hash} is not here yet, so its owner is unknown`);
    if (target.type === 'FORGET')
      return rejected('FORGET_FORGET', `${hash} is a FORGET, which cannot be forgotten`);
    const refusal = whyNotPermitted(facts, target, message);
    if (refusal !== undefined)
      return rejected('NOT_PERMITTED', `${hash} belongs to ${target.owner}: ${refusal}`);
  }
  return PROCESSED;
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
