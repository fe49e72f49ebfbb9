import { AppError, type ErrorKind } from '@skerry/protocol/forms';
import { causeOf } from './reads/cause.ts';

/** Of errors after which a message may be kept all the same. */
const OPEN: ReadonlySet<ErrorKind> = new Set<ErrorKind>(['unavailable', 'internal']);
/** A connection was never made, so nothing was sent. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

const mayBeKept = ({ kind, cause }: AppError) =>
  OPEN.has(kind) && !(cause instanceof Error && NOT_SENT.has(causeOf(cause)));

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
