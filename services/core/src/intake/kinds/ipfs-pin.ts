import { parseIpfsPinContent } from '@skerry/protocol';
import { defineKind, PROCESSED, pending } from '../accepted.ts';
import { resourceEffect } from '../effects/credits.ts';
import { pinEffect } from '../effects/files.ts';

/** IPFS_PIN: the owner asks that what has this CID be kept. */
export const ipfsPin = defineKind({
  read: parseIpfsPinContent,
  effects: [pinEffect, resourceEffect],
  accept: (_message, { hash }) => ({
    subject: hash,
    needs: { files: [hash] },
    changes: [pinEffect.change({ fileHash: hash }), resourceEffect.change({ from: 'file', fileHash: hash })],
    decide: (facts) =>
      facts.hasFile(hash) ? PROCESSED : pending('FILE_NOT_FOUND', `${hash} was not found on IPFS yet`),
  }),
});
