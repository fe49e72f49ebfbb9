import { AppError, parseStoreContent } from '@skerry/protocol';
import { type MessageKind, NO_NEEDS } from '../accepted.ts';

/** STORE: the sender asks that a file be kept. */
export const store: MessageKind = (message) => {
  const content = parseStoreContent(message.content);
  return {
    message,
    postType: null,
    needs: { ...NO_NEEDS, fileHashes: [content.item_hash] },
    decide: (facts) => {
      if (!facts.hasFile(content.item_hash)) {
        throw new AppError(
          'FILE_NOT_FOUND',
          `there is no file ${content.item_hash} here; upload it with POST /storage/store`,
        );
      }
      return [{ kind: 'pin', fileHash: content.item_hash }];
    },
  };
};
