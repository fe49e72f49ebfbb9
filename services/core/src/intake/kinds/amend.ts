import { AMEND, LIMITS, ownerOf, type PostContent, type VerifiedMessage } from '@skerry/protocol';
import {
  type Accepted,
  type Facts,
  forgotten,
  type Own,
  PROCESSED,
  pending,
  rejected,
  type Verdict,
} from '../accepted.ts';
import { whyNotPermitted } from '../pipeline/decide.ts';

function decideAmend(facts: Facts, message: VerifiedMessage, owner: string, ref: string): Verdict {
  const original = facts.message(ref);
  if (original && original.type !== 'POST')
    return rejected('AMEND_TARGET_NOT_FOUND', `${ref} is a ${original.type}, not a POST`);
  if (original?.contentType === AMEND) return rejected('AMEND_OF_AMEND', `${ref} is itself an amend`);
  if (original?.status === 'forgotten') return forgotten(`the post ${ref} was forgotten`);
  if (original?.status !== 'processed')
    return pending('AMEND_TARGET_NOT_FOUND', `there is no post ${ref} here yet`);
  const belongs = `the post ${ref} belongs to ${original.owner}`;
  if (original.owner !== owner) return rejected('NOT_PERMITTED', belongs);
  const refusal = whyNotPermitted(facts, original, message);
  return refusal === undefined ? PROCESSED : rejected('NOT_PERMITTED', `${belongs}: ${refusal}`);
}

/** A new content for a post. The latest by time counts, and takes the place of the whole content. */
export function amendOf(message: VerifiedMessage, content: PostContent): Own<never> {
  const original = content.ref!;
  const owner = ownerOf(message.sender, content);
  return {
    subject: original,
    needs: { messages: [original] },
    decide: (facts, dated) => decideAmend(facts, dated, owner, original),
  };
}

/** The post that an erased message amended, by what is left of it; undefined where it amended none. */
export function amendedBy(
  { type }: Pick<VerifiedMessage, 'type'>,
  { contentType, subject }: Pick<Accepted, 'contentType' | 'subject'>,
): string | undefined {
  if (type !== 'POST' || contentType !== AMEND || subject === null) return undefined;
  // A peer may say more than anybody can sign.
  return subject.length <= LIMITS.refChars ? subject : undefined;
}

/** Whether an erased message went with the post that it amended, as it would with its text: no FORGET names it then. */
export function wentWithPost(accepted: Accepted, facts: Facts): boolean {
  const { message, owner } = accepted;
  const ref = amendedBy(message, accepted);
  return ref !== undefined && decideAmend(facts, message, owner, ref).status === 'forgotten';
}
