import type { SubmittedMessage } from '@skerry/client/core-client';
import type { MessageStatus } from '@skerry/protocol';
import type { Output } from '../output/output.ts';
import { plainText } from '../output/text.ts';

interface Reason {
  readonly code: string;
  readonly message: string;
}

const sentenceOf = ({ code, message }: Reason) => `${plainText(message)} (${plainText(code)})`;

/** Why a message is not in force; undefined where it is, or nobody says why. */
export const whyOf = (reason: Reason | null | undefined): string | undefined =>
  reason ? sentenceOf(reason) : undefined;

/** Tells people of a message that is not in force: whoever sees only its hash would take it for done. */
export function noteVerdict({ note }: Output, status: MessageStatus, reason?: Reason | null): void {
  if (status !== 'processed') note(`${status}: ${whyOf(reason) ?? 'no reason was given'}`);
}

/** The same for programs, as fields of the result of a command that sends a message. */
export const verdictFields = (answer: SubmittedMessage) =>
  answer.status === 'pending'
    ? ({ message_status: 'pending', reason: answer.reason } as const)
    : ({ message_status: 'processed' } as const);

/** Tells people what a node says of a message that they sent: what it rejects is an error. */
export function noteKept(output: Output, answer: SubmittedMessage): void {
  if (answer.status === 'pending') noteVerdict(output, 'pending', answer.reason);
}
