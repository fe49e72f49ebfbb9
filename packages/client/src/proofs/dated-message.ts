import type { VerifiedMessage } from '@skerry/protocol';
import {
  type ListedMessage,
  readWithShared,
  type SignedMessageSource,
  verifyListed,
} from '../signed-message.ts';

/**
 * The message that its sender signed, with since when it is there (`effectiveTime`): whoever has a key dates as they like. One that is too
 * long for lists is read by its hash. Undefined where the core node does not tell since when, as where its text is gone.
 *
 * @param row as `bodies=shared` has it
 * @throws AppError what `verifyListed` throws
 */
export async function verifyDated(
  source: SignedMessageSource,
  row: ListedMessage,
): Promise<VerifiedMessage | undefined> {
  const shared = row.shared ?? (await readWithShared(source, row.item_hash)).shared;
  return typeof shared === 'string' ? verifyListed(source, { ...row, shared }) : undefined;
}
