import { AppError, type VerifiedMessage } from '@skerry/protocol';
import type { Accepted } from './accepted.ts';
import { acceptMessage } from './kinds.ts';

/**
 * From a verified message to an accepted one, without I/O. Malformed messages end here; nothing of them is stored.
 *
 * @param type the only type that this door takes, where it takes one
 */
export function intake(message: VerifiedMessage, type?: string): Accepted {
  if (type !== undefined && message.type !== type) {
    throw new AppError(
      'UNKNOWN_MESSAGE_TYPE',
      `this path takes messages of type ${type}, not ${JSON.stringify(message.type)}`,
    );
  }
  return acceptMessage(message);
}
