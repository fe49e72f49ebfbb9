import { parseStoreContent } from '@skerry/protocol';
import { accept, type MessageKind, PROCESSED, pending } from '../accepted.ts';
import { ownerOf } from '../owner.ts';

/** STORE: the owner asks that a file be kept. */
export const store: MessageKind = (message) => {
  const { item_hash: fileHash, address, tags } = parseStoreContent(message.content);
  return accept(message, {
    owner: ownerOf(message, address),
    subject: fileHash,
    tags: tags ?? [],
    needs: { files: [fileHash] },
    changes: [{ kind: 'pin', fileHash }],
    decide: (facts) =>
      facts.hasFile(fileHash)
        ? PROCESSED
        : pending('FILE_NOT_FOUND', `there is no file ${fileHash} here yet; upload it with POST /storage/store`),
  });
};
