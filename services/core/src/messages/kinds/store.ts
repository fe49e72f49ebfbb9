import { accept, type MessageKind, PROCESSED, pending } from '../accepted.ts';

/** STORE: the owner asks that a file be kept. */
export const store: MessageKind<'STORE'> = (message, { item_hash: fileHash, tags }) =>
  accept(message, {
    subject: fileHash,
    tags: tags ?? [],
    needs: { files: [fileHash] },
    changes: [
      { kind: 'pin', fileHash },
      { kind: 'resource', resource: { from: 'file', fileHash } },
    ],
    decide: (facts) =>
      facts.hasFile(fileHash)
        ? PROCESSED
        : pending(
            'FILE_NOT_FOUND',
            `there is no file ${fileHash} here yet; upload it with POST /storage/store`,
          ),
  });
