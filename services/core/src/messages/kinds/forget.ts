import type { ForgetContent, VerifiedMessage } from '@skerry/protocol';
import {
  accept,
  type Decision,
  type Facts,
  type MessageKind,
  PROCESSED,
  pending,
  rejected,
} from '../accepted.ts';
import { whyNotPermitted } from '../verdict.ts';

function decideForget(facts: Facts, message: VerifiedMessage, { hashes }: ForgetContent): Decision {
  for (const hash of hashes) {
    const target = facts.message(hash);
    if (!target) return pending('FORGET_TARGET_NOT_FOUND', `there is no message ${hash} here yet`);
    if (!target.isRead)
      return pending(
        'CONTENT_NOT_FOUND',
        `the content of ${hash} is not here yet, so whose it is is not known`,
      );
    if (target.type === 'FORGET')
      return rejected('FORGET_FORGET', `${hash} is a FORGET; those cannot be forgotten`);
    const refusal = whyNotPermitted(facts, target, message);
    if (refusal !== undefined)
      return rejected('NOT_PERMITTED', `${hash} belongs to ${target.owner}: ${refusal}`);
  }
  return PROCESSED;
}

/** FORGET: all of these messages, or none of them. */
export const forget: MessageKind<'FORGET'> = (message, content) =>
  accept(message, {
    needs: { messages: content.hashes },
    changes: [{ kind: 'forget', targets: content.hashes }],
    decide: (facts, judged) => decideForget(facts, judged, content),
  });
