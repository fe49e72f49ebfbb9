import type { AskedSigner } from '@skerry/client';
import { AppError, parseEvmAddress, recoverPersonalSigner } from '@skerry/protocol';
import { type Explained, explain, lackOf, type Owner } from './explain.ts';

/** The verifier builds messages and holds no key: it asks the page, and the page its reader. */

/** A text that waits for a signature. */
export interface ToSign {
  readonly turn: number;
  readonly text: string;
  readonly about: Explained;
}

/** What is said of a question that may be shown already. */
export interface Advice {
  readonly turn: number;
  /** What a machine that no node has room for would wait for. */
  readonly lack: string;
}

/** What the page says to it. */
export type Reply =
  | { readonly kind: 'signed'; readonly turn: number; readonly signature: string }
  | { readonly kind: 'refused'; readonly turn: number; readonly message: string };

const waiting = new Map<number, PromiseWithResolvers<string>>();
let turns = 0;

export function hearReply(reply: Reply): void {
  const one = waiting.get(reply.turn);
  waiting.delete(reply.turn);
  if (reply.kind === 'signed') one?.resolve(reply.signature);
  else one?.reject(new AppError('SIGNATURE_REQUIRED', reply.message));
}

/**
 * A signer that asks the page. What comes back is checked before anything is sent: a wallet may have been switched to another
 * account, or lie.
 *
 * @param advise told after the question, as long as that is open, where there is advice
 */
export function signerThatAsks(
  { coreUrl, chain, address }: Owner,
  ask: (toSign: ToSign) => void,
  advise: (advice: Advice) => void,
): AskedSigner {
  const owner = parseEvmAddress(address);
  return {
    chain,
    address: owner,
    async sign(text) {
      const lacking = lackOf(coreUrl, text);
      const about = await explain({ coreUrl, chain, address: owner }, text);
      const turn = turns++;
      const answered = Promise.withResolvers<string>();
      waiting.set(turn, answered);
      ask({ turn, text, about });
      void lacking.then((lack) => {
        if (lack !== null && waiting.has(turn)) advise({ turn, lack });
      });
      const signature = await answered.promise;
      if (recoverPersonalSigner(text, signature.replace(/^0x/, '')) !== owner)
        throw new AppError(
          'INVALID_SIGNATURE',
          `what came back is no signature of ${owner} over this text; nothing was sent`,
        );
      return signature;
    },
  };
}
