import { hkdfSync } from 'node:crypto';
import { bytesToHex } from '@skerry/protocol';
import { createSealedBox, KEY_BYTES, type SealedBox } from '../notify/webhooks/sealed-box.ts';

const SEALING_PURPOSE = 'skerry webhook secrets';
const FINGERPRINT_BYTES = 16;

const derive = (key: string, purpose: string, bytes: number) =>
  new Uint8Array(hkdfSync('sha256', key, '', purpose, bytes));

/** Keeps the secrets of webhooks. @param key as its file has it */
export const openSealedBox = (key: string): SealedBox =>
  createSealedBox(derive(key, SEALING_PURPOSE, KEY_BYTES));

/** Tells one key from another, and gives nothing of it away. */
export const fingerprintOf = (key: string): string =>
  bytesToHex(derive(key, `${SEALING_PURPOSE}: fingerprint`, FINGERPRINT_BYTES));
