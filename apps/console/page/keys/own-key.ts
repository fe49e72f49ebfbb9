import { AskFailure } from '../data/failure.ts';
import { identity } from '../data/identity.ts';
import { askSigning, stopSigning } from '../data/workers.ts';
import { fromHex, toHex } from '../pure/hex.ts';
import { askPasskey, makePasskey } from './passkey.ts';
import { type KeptKey, putKept } from './store.ts';

/** Keys that are made here. The key itself stays in the signing worker. */

function use(address: string, name: string): void {
  identity.value = {
    ...{ chain: 'ETH', address, name, place: 'browser' },
    sign: (text) => askSigning('sign', { text }),
  };
}

/** A new key, or one that is given, until the page is closed. Throws AskFailure. */
export async function makeSessionKey(privateKey?: string): Promise<string> {
  const { address } = await askSigning('make', privateKey === undefined ? {} : { privateKey });
  use(address, 'key of this tab');
  return address;
}

/** Keeps the open key behind a passkey. Throws AskFailure. */
export async function keepBehindPasskey(address: string): Promise<void> {
  const { credential, question, secret } = await makePasskey(`Skerry ${address.slice(0, 10)}`);
  const sealed = await askSigning('keep', { secret: { guard: 'passkey', bytes: secret } });
  const found = { credential: toHex(credential), question: toHex(question) };
  await putKept({ ...sealed, ...found, madeMs: Date.now() });
  use(address, 'key behind a passkey');
}

/** Keeps the open key behind a passphrase. Throws AskFailure. */
export async function keepBehindPassphrase(address: string, passphrase: string): Promise<void> {
  const bytes = new TextEncoder().encode(passphrase);
  const sealed = await askSigning('keep', { secret: { guard: 'passphrase', bytes } });
  await putKept({ ...sealed, credential: null, question: null, madeMs: Date.now() });
  use(address, 'key behind a passphrase');
}

async function secretOf(key: KeptKey, passphrase: string): Promise<Uint8Array<ArrayBuffer>> {
  if (key.guard === 'passphrase') return new TextEncoder().encode(passphrase);
  if (key.credential === null || key.question === null)
    throw new AskFailure('SIGNATURE_REQUIRED', 'what the browser kept of this key does not name its passkey');
  return askPasskey(fromHex(key.credential), fromHex(key.question));
}

/** Opens a key that was kept. @param passphrase of a key behind one */
export async function openKept(key: KeptKey, passphrase: string): Promise<void> {
  const bytes = await secretOf(key, passphrase);
  const { address } = await askSigning('open', { key, secret: { guard: key.guard, bytes } });
  use(address, `key behind a ${key.guard}`);
}

/** The private key as text, for its owner. */
export const revealKey = () => askSigning('reveal', null);

/** Nobody signs any more, and the key leaves memory. */
export function putAway(): void {
  stopSigning();
  identity.value = undefined;
}
