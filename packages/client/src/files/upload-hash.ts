import { AppError, itemHashOf } from '@skerry/protocol/forms';
import type { AskedSigner } from '../signer.ts';

type Sender = Pick<AskedSigner, 'chain' | 'address'>;

/** The STORE message that an upload becomes: it follows from whose it is, and of which file. */
export const uploadHashOf = ({ chain, address }: Sender, fileHash: string): string =>
  itemHashOf(chain, address, fileHash);

/** What a node says of an upload. Throws HASH_MISMATCH where it names another file, or another message, than the one that was signed. */
export function checkStored<Said extends { readonly item_hash: string; readonly file_hash: string }>(
  sender: Sender,
  fileHash: string,
  said: Said,
): Said {
  const itemHash = uploadHashOf(sender, fileHash);
  if (said.file_hash === fileHash && said.item_hash === itemHash) return said;
  throw new AppError(
    'HASH_MISMATCH',
    `the node says that it stored ${said.file_hash} by the message ${said.item_hash}: signed were ${fileHash} and ${itemHash}`,
  );
}
