import { parseStoreContent } from '@skerry/protocol';
import { defineKind, PROCESSED, pending } from '../accepted.ts';
import { resourceEffect } from '../effects/credits.ts';
import { pinEffect } from '../effects/files.ts';

/** STORE: the owner asks that a file be kept. */
export const store = defineKind({
  read: parseStoreContent,
  effects: [pinEffect, resourceEffect],
  accept: (_message, { item_hash: fileHash, tags }) => ({
    subject: fileHash,
    tags: tags ?? [],
    needs: { files: [fileHash] },
    changes: [pinEffect.change({ fileHash }), resourceEffect.change({ from: 'file', fileHash })],
    decide: (facts) =>
      facts.hasFile(fileHash)
        ? PROCESSED
        : pending(
            'FILE_NOT_FOUND',
            `there is no file ${fileHash} here yet; upload it with POST /storage/store`,
          ),
  }),
});
