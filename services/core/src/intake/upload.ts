import { type StoreContent, verifyUpload } from '@skerry/protocol';
import { acceptMessage } from './accept.ts';
import { type Accepted, PROCESSED } from './accepted.ts';
import { fileEffect, type UploadedFile } from './effects/files.ts';

/** The form fields of an upload beside the file. */
export interface UploadFields {
  readonly address: string;
  readonly signature: string;
  readonly channel: string;
  readonly tags: readonly string[];
}

/**
 * The STORE message that an upload stands for. The signed text is the file's hash; the rest of the content is the node's
 * own note. Uploading the same file again is the same message. Throws what verifyUpload throws.
 */
export function acceptUpload(fields: UploadFields, file: UploadedFile, nowSeconds: number): Accepted {
  const content: StoreContent = {
    item_type: 'storage',
    item_hash: file.hash,
    size: file.sizeBytes,
    content_type: file.contentType,
    ...(fields.tags.length > 0 ? { tags: [...fields.tags] } : {}),
  };
  const accepted = acceptMessage({
    form: 'upload',
    ...verifyUpload(file.hash, fields),
    type: 'STORE',
    channel: fields.channel,
    time: nowSeconds,
    content,
    signature: fields.signature,
    sourceText: file.hash,
  });
  // The file becomes known in the transaction that keeps its message: a refused upload leaves no readable file.
  return {
    ...accepted,
    changes: [fileEffect.change(file), ...accepted.changes],
    isLeftIfRefused: true,
    decide: () => PROCESSED,
  };
}
