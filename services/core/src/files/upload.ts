import { AppError, familyOf, itemHashOf, type StoreContent } from '@skerry/protocol';
import { type Accepted, PROCESSED, type UploadedFile } from '../messages/accepted.ts';
import { acceptMessage } from '../messages/kinds.ts';

/** The form fields of an upload beside the file. */
export interface UploadFields {
  readonly address: string;
  readonly signature: string;
  readonly channel: string;
  readonly tags: readonly string[];
}

const CHAIN = 'ETH';

/**
 * The STORE message that an upload stands for. What the uploader signed is the file's SHA-256 in lower-case hexadecimal
 * (specification, "Authentication" 3), so that is the signed text; the rest of the content is the node's own note.
 * Uploading the same file again is the same message.
 */
export function acceptUpload(fields: UploadFields, file: UploadedFile, nowSeconds: number): Accepted {
  const family = familyOf(CHAIN);
  const sender = family.parseAddress(fields.address);
  if (!family.verify(file.hash, fields.signature, sender)) {
    throw new AppError(
      'INVALID_SIGNATURE',
      `the signature over the file's hash ${file.hash} was not made by ${sender}`,
    );
  }
  const content: StoreContent = {
    item_type: 'storage',
    item_hash: file.hash,
    size: file.sizeBytes,
    content_type: file.contentType,
    ...(fields.tags.length > 0 ? { tags: [...fields.tags] } : {}),
  };
  const accepted = acceptMessage({
    form: 'upload',
    itemHash: itemHashOf(CHAIN, sender, file.hash),
    chain: CHAIN,
    sender,
    type: 'STORE',
    channel: fields.channel,
    time: nowSeconds,
    content,
    signature: fields.signature,
    sourceText: file.hash,
  });
  // The file becomes known in the transaction that keeps its message: a refused upload leaves no readable file.
  return { ...accepted, changes: [{ kind: 'file', file }, ...accepted.changes], decide: () => PROCESSED };
}
