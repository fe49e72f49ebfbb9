import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

/** Keeps secrets at rest. What was sealed for one purpose does not open for another. */
export interface SealedBox {
  seal(text: string, purpose: string): Buffer;
  /** Throws where the bytes were changed, or sealed by another key or for another purpose. */
  open(sealed: Uint8Array, purpose: string): string;
}

/** AES-256-GCM (NIST SP 800-38D) with a fresh nonce each time: nonce, ciphertext, tag. */
export function createSealedBox(key: Uint8Array): SealedBox {
  return {
    seal(text, purpose) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(purpose));
      return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, purpose) {
      const bytes = Buffer.from(sealed);
      const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(purpose))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      const body = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([body, decipher.final()]).toString('utf8');
    },
  };
}

/** What was opened is remembered for so long at most: many deliveries to one endpoint open its secret once. */
const OPENED_MS = 1_000;

/** Opens each piece of sealed bytes once a second; after that second no secret is in memory. */
export function openOften(box: SealedBox, keptMs = OPENED_MS): SealedBox['open'] {
  const opened = new Map<Uint8Array, { readonly purpose: string; readonly text: string }>();
  return (sealed, purpose) => {
    const known = opened.get(sealed);
    if (known?.purpose === purpose) return known.text;
    const text = box.open(sealed, purpose);
    if (opened.size === 0) setTimeout(() => opened.clear(), keptMs).unref();
    opened.set(sealed, { purpose, text });
    return text;
  };
}
