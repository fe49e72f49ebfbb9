import { createSigner, generatePrivateKey, type Signer } from '@skerry/client/signer';
import { AppError } from '@skerry/protocol/forms';
import { openKey, type SealedKey, type Secret, sealKey } from '../keys/seal.ts';
import { fromHex, toHex } from '../pure/hex.ts';

/**
 * The only place that holds a private key. It is served with `connect-src 'none'`: whatever runs here can reach no network, and
 * gives the page signatures, and the key itself only where its owner asks to have it shown.
 */

export interface SigningTasks {
  /** A new key, or the one that is given; it is forgotten with the page unless it is kept. */
  readonly make: { readonly asked: { readonly privateKey?: string }; readonly answer: { address: string } };
  /** The key that is open, sealed. */
  readonly keep: { readonly asked: { readonly secret: Secret }; readonly answer: SealedKey };
  readonly open: {
    readonly asked: { readonly key: SealedKey; readonly secret: Secret };
    readonly answer: { address: string };
  };
  readonly sign: { readonly asked: { readonly text: string }; readonly answer: string };
  /** The private key as text. */
  readonly reveal: { readonly asked: null; readonly answer: string };
}
export type SigningName = keyof SigningTasks;

export interface SigningAsked<N extends SigningName = SigningName> {
  readonly id: number;
  readonly name: N;
  readonly asked: SigningTasks[N]['asked'];
}

export type SigningTold =
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly code: string; readonly message: string };

let held: { readonly signer: Signer; readonly privateKey: string } | undefined;

function hold(privateKey: string): { address: string } {
  const signer = createSigner(privateKey);
  held = { signer, privateKey: `0x${privateKey.trim().toLowerCase().replace(/^0x/, '')}` };
  return { address: signer.address };
}

function holding() {
  if (!held) throw new AppError('SIGNATURE_REQUIRED', 'no key is open');
  return held;
}

const HANDLERS: {
  readonly [N in SigningName]: (
    asked: SigningTasks[N]['asked'],
  ) => SigningTasks[N]['answer'] | Promise<SigningTasks[N]['answer']>;
} = {
  make: ({ privateKey = generatePrivateKey() }) => hold(privateKey),
  keep: ({ secret }) => {
    const { signer, privateKey } = holding();
    return sealKey(signer.address, fromHex(privateKey.slice(2)), secret);
  },
  async open({ key, secret }) {
    const bytes = await openKey(key, secret);
    if (!bytes)
      throw new AppError(
        'SIGNATURE_REQUIRED',
        `this ${key.guard} does not open the key of ${key.address}, or what the browser kept was changed`,
      );
    return hold(`0x${toHex(bytes)}`);
  },
  sign: ({ text }) => holding().signer.sign(text),
  reveal: () => holding().privateKey,
};

const tell = (told: SigningTold) => postMessage(told);

async function doTask<N extends SigningName>({ id, name, asked }: SigningAsked<N>): Promise<void> {
  try {
    tell({ kind: 'answer', id, answer: await HANDLERS[name](asked) });
  } catch (error) {
    const known = error instanceof AppError ? error : new AppError('INTERNAL', 'the signing worker failed');
    tell({ kind: 'failure', id, code: known.code, message: known.message });
  }
}

addEventListener('message', ({ data }: MessageEvent<SigningAsked>) => void doTask(data));
// Its modules await WebAssembly: what came before this line would have been lost.
tell({ kind: 'ready' });
