import { type ErrorCode, MessageStatus } from '@skerry/protocol';
import Type from 'typebox';
import type { StoredMessage } from '../messages/stored.ts';

/** What `GET /messages/{hash}` has beside the specification's message: the fields of deployed nodes. */
export const VerdictView = Type.Object({
  status: MessageStatus,
  reception_time: Type.String({ format: 'date-time' }),
  reason: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  error_code: Type.Optional(
    Type.Integer({ description: 'the reason as deployed nodes number it; rejected only' }),
  ),
  details: Type.Optional(Type.Union([Type.Object({ errors: Type.Array(Type.Unknown()) }), Type.Null()])),
  message: Type.Optional(Type.Unknown({ description: 'the message in the network form; not while pending' })),
  messages: Type.Optional(Type.Array(Type.Unknown(), { description: 'the same while pending' })),
  forgotten_by: Type.Optional(Type.Array(Type.String())),
});

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
