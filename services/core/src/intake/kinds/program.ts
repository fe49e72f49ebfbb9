import { type Program, parseProgramContent, programNeeds, programOf } from '@skerry/protocol';
import { defineKind, type Facts, PROCESSED, pending } from '../accepted.ts';
import { resourceEffect } from '../effects/credits.ts';
import { pinEffect } from '../effects/files.ts';
import { programEffect } from '../effects/programs.ts';

/** Code is named by its file, or by the STORE message that keeps it. */
const isAtHand = (facts: Facts, ref: string) => {
  const message = facts.message(ref);
  return facts.hasFile(ref) || (message?.type === 'STORE' && message.status === 'processed');
};

/** PROGRAM: code that runs when it is called. Its code is source text, or a stored file. */
export const program = defineKind({
  read: (content): Program => programOf(parseProgramContent(content)),
  effects: [programEffect, resourceEffect, pinEffect],
  accept(_message, content) {
    const own = [
      programEffect.change(content),
      resourceEffect.change({ from: 'needs', needs: programNeeds(content) }),
    ];
    if (content.code.kind === 'source') return { changes: own };
    const { ref } = content.code;
    return {
      needs: { files: [ref], messages: [ref] },
      // What is named by its STORE message stays for as long as that is in force, which the program hangs on.
      changes: [...own, pinEffect.change({ fileHash: ref })],
      decide: (facts) =>
        isAtHand(facts, ref)
          ? PROCESSED
          : pending('FILE_NOT_FOUND', `the program's code ${ref} is not here yet`),
    };
  },
});
