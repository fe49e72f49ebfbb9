import { AppError, ERRORS, type ErrorCode, type ErrorKind } from '@skerry/protocol/forms';
import { codeOfCause } from './reads/cause.ts';

/** Of errors after which a message may be kept all the same. */
const OPEN: ReadonlySet<ErrorKind> = new Set<ErrorKind>(['unavailable', 'internal']);
/** A connection was never made, so nothing was sent; the last two where no TLS is spoken. */
const NOT_SENT: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
  ...['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER'],
]);
/**
 * A certificate that is not believed, by which nothing is sent either. Node names them as OpenSSL does, without a list or a prefix, and
 * has ERR_TLS_CERT_* beside those.
 */
const NOT_BELIEVED =
  /^(?!ERR_SSL_).*(CERT|CRL)|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^HOSTNAME_MISMATCH$/;

const isBeforeSent = (code: string) => NOT_SENT.has(code) || NOT_BELIEVED.test(code);

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
