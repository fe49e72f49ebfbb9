import { parseProgramContent } from '@skerry/protocol';
import { accept, type MessageKind, PROCESSED, pending } from '../accepted.ts';
import { ownerOf } from '../owner.ts';

const FILE_HASH = /^[0-9a-f]{64}$/;

/** PROGRAM: code that runs when it is called. Its code is source text, or the hash of a stored file. */
export const program: MessageKind = (message) => {
  const content = parseProgramContent(message.content);
  const owner = ownerOf(message, content.address);
  if (!FILE_HASH.test(content.code)) return accept(message, { owner, changes: [{ kind: 'program', content }] });
  return accept(message, {
    owner,
    needs: { files: [content.code] },
    // The code stays for as long as the program does, also where its STORE message is forgotten.
    changes: [{ kind: 'program', content }, { kind: 'pin', fileHash: content.code }],
    decide: (facts) =>
      facts.hasFile(content.code)
        ? PROCESSED
        : pending('FILE_NOT_FOUND', `the program's code ${content.code} is not here yet`),
  });
};
