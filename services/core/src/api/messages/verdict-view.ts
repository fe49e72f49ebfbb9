import type { ErrorCode } from '@skerry/protocol';
import { contentOf, type StoredMessage } from '../../intake/stored.ts';
import type { Confirmations } from '../../state/messages/confirmations.ts';
import { isoOf, networkViewOf } from '../../state/messages/view.ts';

/** Reasons as deployed nodes number them. */
const NETWORK_CODES: Partial<Record<ErrorCode, number>> = {
  INVALID_SIGNATURE: 1,
  NOT_PERMITTED: 2,
  CONTENT_NOT_FOUND: 3,
  FILE_NOT_FOUND: 4,
  AMEND_TARGET_NOT_FOUND: 101,
  AMEND_OF_AMEND: 102,
  INSTANCE_NOT_FOUND: 300,
  FORGET_TARGET_NOT_FOUND: 501,
  FORGET_FORGET: 502,
  MESSAGE_FORGOTTEN: 504,
};
const INVALID_FORMAT = 0;

/** How what a message said is paid; null where it says nothing of that, or is erased. */
function paymentOf(row: StoredMessage): string | null {
  const type = (contentOf(row) as { payment?: { type?: unknown } } | null)?.payment?.type;
  return typeof type === 'string' ? type : null;
}

/**
 * The message as deployed nodes show it: one that waits as it came, of a forgotten one what is left.
 * @param shown as what it is shown (hideForgotten)
 */
export function submittedViewOf(row: StoredMessage, confirmations: Confirmations, shown = row) {
  const { size, ...message } = networkViewOf(shown, confirmations);
  const { confirmations: _of, confirmed: _is, ...submitted } = message;
  const received = row.received_at.toISOString();
  if (row.status === 'pending')
    return { messages: [{ ...submitted, time: isoOf(message.time), reception_time: received }] };
  if (row.status !== 'forgotten') return { message };
  const { content: _content, item_content: _text, ...skeleton } = submitted;
  const forgotten_at = new Date(row.settled_at_ms).toISOString();
  return { message: { ...skeleton, owner: row.owner, payment_type: paymentOf(row), size, forgotten_at } };
}

/** What deployed nodes say of a message beside the specification's fields. */
export function verdictOf(row: StoredMessage) {
  return {
    status: row.status,
    reception_time: row.received_at.toISOString(),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.status === 'rejected' && row.reason
      ? {
          error_code: NETWORK_CODES[row.reason.code] ?? INVALID_FORMAT,
          details: { errors: [row.reason.message] },
        }
      : {}),
  };
}
