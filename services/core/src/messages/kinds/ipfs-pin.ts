import { accept, type MessageKind, PROCESSED, pending } from '../accepted.ts';

/** IPFS_PIN: the owner asks that what has this CID be kept. */
export const ipfsPin: MessageKind<'IPFS_PIN'> = (message, { hash }) =>
  accept(message, {
    subject: hash,
    needs: { files: [hash] },
    changes: [
      { kind: 'pin', fileHash: hash },
      { kind: 'resource', resource: { from: 'file', fileHash: hash } },
    ],
    decide: (facts) =>
      facts.hasFile(hash) ? PROCESSED : pending('FILE_NOT_FOUND', `${hash} was not found on IPFS yet`),
  });
