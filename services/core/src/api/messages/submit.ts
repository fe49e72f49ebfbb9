import { answer } from '@skerry/kit';
import { AppError, type ErrorKind, type VerifiedMessage } from '@skerry/protocol';
import type { RefusalView } from '@skerry/protocol/api/core/messages';
import type { Submitted, Wanted } from '../../intake/submissions.ts';
import type { Rooms } from '../rooms.ts';

const PUBLISHED = { status: 'success', failed: [] };

const formOf = ({ form }: VerifiedMessage) => (form === 'network' ? { form } : {});

/** Puts a message before the node, and waits for the verdict. */
export const submitBody = (
  rooms: Pick<Rooms, 'intake'>,
  body: Uint8Array,
  wanted?: Wanted,
): Promise<Submitted> => rooms.intake.client.submit(body, wanted);

/** The caller's answer; a message that is not in force and will not be is an error with the verdict's code. */
export function answerOf<More extends object>({ message, verdict }: Submitted, more: More) {
  const { status, reason } = verdict;
  const { itemHash } = message;
  const published =
    message.form === 'network' ? { publication_status: PUBLISHED, message_status: status } : {};
  if (status === 'processed')
    return answer(200, { item_hash: itemHash, status: 'success' as const, ...more, ...published });
  if (status === 'pending' && reason)
    return answer(202, { item_hash: itemHash, status, reason, ...more, ...published });
  throw new AppError(reason?.code ?? 'MESSAGE_FORGOTTEN', reason?.message ?? 'the message was forgotten', {
    details: { item_hash: itemHash, message_status: status, ...formOf(message) },
  });
}

/** What waiting or another server may cure is not the message's fault. */
const MESSAGE_FAULTS: readonly ErrorKind[] = ['invalid', 'unauthorized', 'refused', 'missing', 'conflict'];

/**
 * A refusal as the caller's form has it: `undefined` where the error is answered as any other is, since the message was
 * an envelope, was forgotten (410), or is not at fault.
 */
export function networkRefusalOf(error: unknown): RefusalView | undefined {
  if (!(error instanceof AppError) || !MESSAGE_FAULTS.includes(error.kind)) return undefined;
  const { code, message, details } = error;
  if ((details as { form?: unknown } | undefined)?.form !== 'network' || code === 'MESSAGE_FORGOTTEN')
    return undefined;
  return {
    error: message,
    status: 'error',
    code,
    publication_status: { status: 'error', failed: [] },
    message_status: 'rejected',
    details,
  };
}
