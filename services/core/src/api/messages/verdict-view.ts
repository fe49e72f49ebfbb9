import type { ErrorCode } from '@skerry/protocol';
import type { StoredMessage } from '../../intake/stored.ts';

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
