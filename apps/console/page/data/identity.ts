import { type ReadonlySignal, signal } from '@preact/signals';
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
  /** Of a machine that no node has room for: what it would wait for. It comes while the question is open, or not. */
  readonly lack: ReadonlySignal<string | null>;
  settle(answer: { readonly isWanted: boolean }): void;
}

export const question = signal<Question | undefined>(undefined);

/** One question at a time: the next one waits. */
let before: Promise<unknown> = Promise.resolve();

function ask({ by, text, about, lack, here }: Wish): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = ({ isWanted }: { readonly isWanted: boolean }) => {
      here.removeEventListener('abort', leave);
      question.value = undefined;
      resolve(isWanted);
    };
    const leave = () => settle({ isWanted: false });
    if (here.aborted) {
      leave();
      return;
    }
    here.addEventListener('abort', leave);
    question.value = { by, text, about, lack, settle };
  });
}

interface Wish extends Pick<Question, 'by' | 'text' | 'about' | 'lack'> {
  /** Ends with the page that the reader wanted it on: a question about a page that they left is refused for them. */
  readonly here: AbortSignal;
}

/** Shows what is to be signed and, where the reader wants it, has it signed. Throws AskFailure. */
export async function askOwner(wish: Wish): Promise<string> {
  const asked = before.then(() => ask(wish));
  before = asked;
  if (!(await asked)) throw new AskFailure('SIGNATURE_REQUIRED', 'you did not sign it; nothing was sent');
  return wish.by.sign(wish.text);
}
