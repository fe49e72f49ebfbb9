import { createHmac } from 'node:crypto';
import { VERSION_1, VERSION_2, type Version } from './packet.ts';

/** What protects Initial packets of one side. Anybody who saw the first of them can derive it: it hides nothing. */
export interface InitialKeys {
  readonly key: Uint8Array;
  readonly iv: Uint8Array;
  readonly headerKey: Uint8Array;
}

const KEY_BYTES = 16;
const IV_BYTES = 12;
const HASH_BYTES = 32;

/** RFC 9001 §5.2, RFC 9369 §3.3.1. */
const SALTS = {
  [VERSION_1]: Buffer.from('38762cf7f55934b34d179ae6a4c80cadccbb7f0a', 'hex'),
  [VERSION_2]: Buffer.from('0dede3def700a6db819381be6e269dcbf9bd2ed9', 'hex'),
};
/** RFC 9001 §5.1, RFC 9369 §3.3.2. */
const PREFIXES = { [VERSION_1]: 'quic', [VERSION_2]: 'quicv2' };

const hmac = (key: Uint8Array, text: Uint8Array) => createHmac('sha256', key).update(text).digest();

/** HKDF-Expand-Label without a context (RFC 8446 §7.1), of at most one block. */
function expandLabel(secret: Uint8Array, label: string, length: number): Uint8Array {
  const text = `tls13 ${label}`;
  const head = Buffer.from([0, length, text.length]);
  return hmac(secret, Buffer.concat([head, Buffer.from(text), Buffer.from([0, 1])])).subarray(0, length);
}

/** @param destination the destination id of the client's first Initial packet */
export function initialKeys(
  version: Version,
  destination: Uint8Array,
  side: 'client' | 'server',
): InitialKeys {
  const secret = expandLabel(hmac(SALTS[version], destination), `${side} in`, HASH_BYTES);
  const part = (name: string, length: number) => expandLabel(secret, `${PREFIXES[version]} ${name}`, length);
  return { key: part('key', KEY_BYTES), iv: part('iv', IV_BYTES), headerKey: part('hp', KEY_BYTES) };
}
