import { fromHex, toHex } from '../pure/hex.ts';

/** How a key that was made here is kept: encrypted, so that whoever reads the browser's storage has nothing. */

/** What opens it: the output of a passkey (WebAuthn, extension `prf`), or a passphrase. */
export type Guard = 'passkey' | 'passphrase';

export interface Secret {
  readonly guard: Guard;
  /** 32 bytes of a passkey; a passphrase in UTF-8. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A sealed key, as the browser keeps it. All bytes are hexadecimal. */
export interface SealedKey {
  /** Lower case; the seal covers it. */
  readonly address: string;
  readonly guard: Guard;
  readonly salt: string;
  readonly iv: string;
  readonly sealed: string;
}

const SALT_BYTES = 16;
const IV_BYTES = 12;
/** OWASP's figure of 2023 for PBKDF2 with SHA-256. */
const ROUNDS = 600_000;
const USE = 'skerry console key';
async function sealingKey({ guard, bytes }: Secret, salt: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  const name = guard === 'passkey' ? 'HKDF' : 'PBKDF2';
  const base = await crypto.subtle.importKey('raw', bytes, name, false, ['deriveKey']);
  const how =
    guard === 'passkey'
      ? { name, hash: 'SHA-256', salt, info: new TextEncoder().encode(USE) }
      : { name, hash: 'SHA-256', salt, iterations: ROUNDS };
  return crypto.subtle.deriveKey(how, base, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
}

const coverOf = (address: string, iv: Uint8Array<ArrayBuffer>) => ({
  name: 'AES-GCM',
  iv,
  additionalData: new TextEncoder().encode(address),
});

/** @param privateKey 32 bytes */
export async function sealKey(
  address: string,
  privateKey: Uint8Array<ArrayBuffer>,
  secret: Secret,
): Promise<SealedKey> {
  const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const key = await sealingKey(secret, salt);
  const sealed = new Uint8Array(await crypto.subtle.encrypt(coverOf(address, iv), key, privateKey));
  return {
    address,
    guard: secret.guard,
    ...{ salt: toHex(salt), iv: toHex(iv), sealed: toHex(sealed) },
  };
}

/** The private key, 32 bytes; undefined where the secret is another one, or what was kept was changed. */
export async function openKey(
  { address, salt, iv, sealed }: SealedKey,
  secret: Secret,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const key = await sealingKey(secret, fromHex(salt));
  try {
    return new Uint8Array(await crypto.subtle.decrypt(coverOf(address, fromHex(iv)), key, fromHex(sealed)));
  } catch {
    return undefined;
  }
}
