import { familyOf, type PersonalCheck } from './chains.ts';
import { AppError } from './errors.ts';
import { type ItemHash, itemHashOf } from './hash.ts';

const CHAIN = 'ETH';

/** The STORE message that an upload becomes. @param sender as `verifyUpload` gives it */
export const itemHashOfUpload = (fileHash: string, sender: string): ItemHash =>
  itemHashOf(CHAIN, sender, fileHash);

/**
 * Whose upload of a file this is, and the STORE message that it stands for. What the uploader signed is the file's SHA-256
 * in lower-case hexadecimal (specification, "Authentication" 3).
 *
 * @throws AppError INVALID_ADDRESS, INVALID_SIGNATURE
 */
export function verifyUpload(
  fileHash: string,
  { address, signature }: { readonly address: string; readonly signature: string },
  checkPersonal?: PersonalCheck,
): { chain: string; sender: string; itemHash: string } {
  const family = familyOf(CHAIN);
  const sender = family.parseAddress(address);
  if (!family.verify(fileHash, signature, sender, { checkPersonal }))
    throw new AppError(
      'INVALID_SIGNATURE',
      `the signature over the file's hash ${fileHash} was not made by ${sender}`,
    );
  return { chain: CHAIN, sender, itemHash: itemHashOfUpload(fileHash, sender) };
}
