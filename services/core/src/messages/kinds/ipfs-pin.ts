import { parseIpfsPinContent } from '@skerry/protocol';
import { accept, type MessageKind, PROCESSED, pending } from '../accepted.ts';
import { ownerOf } from '../owner.ts';

/** IPFS_PIN: the owner asks that what has this CID be kept. */
export const ipfsPin: MessageKind = (message) => {
  const { hash, address } = parseIpfsPinContent(message.content);
  return accept(message, {
    owner: ownerOf(message, address),
    subject: hash,
    needs: { files: [hash] },
    changes: [{ kind: 'pin', fileHash: hash }],
    decide: (facts) =>
      facts.hasFile(hash) ? PROCESSED : pending('FILE_NOT_FOUND', `${hash} was not found on IPFS yet`),
  });
};
