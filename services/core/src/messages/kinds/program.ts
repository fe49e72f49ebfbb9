import { programNeeds } from '@skerry/protocol';
import { accept, type Facts, type MessageKind, PROCESSED, pending } from '../accepted.ts';

/** Code is named by its file, or by the STORE message that keeps it. */
const isAtHand = (facts: Facts, ref: string) => {
  const message = facts.message(ref);
  return facts.hasFile(ref) || (message?.type === 'STORE' && message.status === 'processed');
};

/** PROGRAM: code that runs when it is called. Its code is source text, or a stored file. */
export const program: MessageKind<'PROGRAM'> = (message, content) => {
  const own = [
    { kind: 'program', program: content },
    { kind: 'resource', resource: { from: 'needs', needs: programNeeds(content) } },
  ] as const;
  if (content.code.kind === 'source') return accept(message, { changes: own });
  const { ref } = content.code;
  return accept(message, {
    needs: { files: [ref], messages: [ref] },
    // The code stays for as long as the program does, also where its STORE message is forgotten.
    changes: [...own, { kind: 'pin', fileHash: ref }],
    decide: (facts) =>
      isAtHand(facts, ref)
        ? PROCESSED
        : pending('FILE_NOT_FOUND', `the program's code ${ref} is not here yet`),
  });
};
