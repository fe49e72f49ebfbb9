import { signal } from '@preact/signals';
import type { Explained } from '../workers/explain.ts';
import { AskFailure } from './failure.ts';

/** Who the reader is, if anybody: the address that signs. */
export interface Identity {
  readonly chain: 'ETH';
  /** Lower case. */
  readonly address: string;
  /** What it is called where it is chosen: `MetaMask`, `key of this tab`. */
  readonly name: string;
  /** Where the key is. */
  readonly place: 'wallet' | 'browser';
  /** EIP-191. Rejects where the wallet refuses. */
  sign(text: string): Promise<string>;
}

export const identity = signal<Identity | undefined>(undefined);

/** What waits for a signature. */
export interface Question {
  readonly by: Identity;
  readonly text: string;
  readonly about: Explained;
  settle(answer: { readonly isWanted: boolean }): void;
}

export const question = signal<Question | undefined>(undefined);

/** One question at a time: the next one waits. */
let before: Promise<unknown> = Promise.resolve();

function ask(by: Identity, text: string, about: Explained): Promise<boolean> {
  return new Promise((resolve) => {
    question.value = {
      ...{ by, text, about },
      settle({ isWanted }) {
        question.value = undefined;
        resolve(isWanted);
      },
    };
  });
}

/** Shows what is to be signed and, where the reader wants it, has it signed. Throws AskFailure. */
export async function askOwner(by: Identity, text: string, about: Explained): Promise<string> {
  const asked = before.then(() => ask(by, text, about));
  before = asked;
  if (!(await asked)) throw new AskFailure('SIGNATURE_REQUIRED', 'you did not sign it; nothing was sent');
  return by.sign(text);
}
