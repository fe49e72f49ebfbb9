import { AppError, ERRORS, type ErrorCode, type ErrorKind } from '@skerry/protocol/forms';
import { codeOfCause, isNotBelieved } from './reads/cause.ts';

/** Of errors after which a message may be kept all the same. */
const OPEN: ReadonlySet<ErrorKind> = new Set<ErrorKind>(['unavailable', 'internal']);
/** A connection was never made, so nothing was sent; the last two where no TLS is spoken. */
const NOT_SENT: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
  ...['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER'],
]);
const isBeforeSent = (code: string) => NOT_SENT.has(code) || isNotBelieved(code);

/** Whether a message may be kept all the same by a node that fails so. */
export const leavesOpen = (code: ErrorCode): boolean => OPEN.has(ERRORS[code].kind);

const mayBeKept = (error: AppError) =>
  leavesOpen(error.code) && !isBeforeSent(codeOfCause(error.cause ?? {}) ?? '');

/**
 * The answer to a message that is on its way. Where that is an error which leaves open whether the message arrived, its details have the
 * `item_hash`: whoever sends the same again, as another message, can ask for this one before.
 */
export async function withSent<Answer>(itemHash: string, sending: Promise<Answer>): Promise<Answer> {
  try {
    return await sending;
  } catch (error) {
    if (!(error instanceof AppError && mayBeKept(error))) throw error;
    const details = { ...(error.details as object | undefined), item_hash: itemHash };
    throw new AppError(error.code, error.message, { cause: error.cause, details });
  }
}
