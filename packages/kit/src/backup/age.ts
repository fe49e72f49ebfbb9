import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from 'node:crypto';
import { promisify } from 'node:util';
import { AppError } from '@skerry/protocol/forms';
import { ByteReader } from './bytes.ts';

/**
 * The file format of age (age-encryption.org/v1) with a passphrase: `age -d` opens it, too. scrypt makes a key of the
 * passphrase, which wraps the file's key; ChaCha20-Poly1305 seals pieces of 64 KiB, and the last one says that it is.
 */

const VERSION_LINE = 'age-encryption.org/v1';
const CHUNK_BYTES = 64 * 1024;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const FILE_KEY_BYTES = 16;
const SALT_BYTES = 16;
const NONCE_BYTES = 16;
/** 128 MiB and a third of a second for each guess. */
const WORK_FACTOR = 17;
/** Of a file that somebody else made: 1 GiB. */
const WORK_FACTOR_MAX = 20;
const HEADER_BYTES_MAX = 1024;
const ALGORITHM = 'chacha20-poly1305';

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replaceAll('=', '');
const derive = (key: Uint8Array, salt: Uint8Array, info: string) =>
  Buffer.from(hkdfSync('sha256', key, salt, info, KEY_BYTES));

const stretch = promisify<
  string,
  Buffer,
  number,
  { N: number; r: number; p: number; maxmem: number },
  Buffer
>(scrypt);

function wrapKeyOf(passphrase: string, salt: Uint8Array, workFactor: number): Promise<Buffer> {
  const N = 2 ** workFactor;
  const salted = Buffer.concat([Buffer.from(`${VERSION_LINE}/scrypt`), salt]);
  return stretch(passphrase, salted, KEY_BYTES, { N, r: 8, p: 1, maxmem: 2 * 128 * N * 8 });
}

function sealPiece(key: Uint8Array, nonce: Uint8Array, bytes: Uint8Array): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined where it was sealed with another key, or is changed. */
function openPiece(key: Uint8Array, nonce: Uint8Array, sealed: Buffer): Buffer | undefined {
  if (sealed.length < TAG_BYTES) return undefined;
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}

/** Counts the pieces in eleven bytes; the twelfth says whether it is the last. */
function pieceNonce(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(index, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

const headerMac = (fileKey: Uint8Array, header: string) =>
  createHmac('sha256', derive(fileKey, Buffer.alloc(0), 'header'))
    .update(header)
    .digest();

/**
 * Seals a stream.
 * @param workFactor its power of two is what a guess costs; the header says it
 */
export async function* sealWith(
  passphrase: string,
  source: AsyncIterable<Uint8Array>,
  workFactor: number = WORK_FACTOR,
): AsyncGenerator<Buffer> {
  const fileKey = randomBytes(FILE_KEY_BYTES);
  const salt = randomBytes(SALT_BYTES);
  const wrapped = sealPiece(await wrapKeyOf(passphrase, salt, workFactor), Buffer.alloc(12), fileKey);
  const header = `${VERSION_LINE}\n-> scrypt ${base64(salt)} ${workFactor}\n${base64(wrapped)}\n---`;
  yield Buffer.from(`${header} ${base64(headerMac(fileKey, header))}\n`);
  const nonce = randomBytes(NONCE_BYTES);
  yield nonce;
  const key = derive(fileKey, nonce, 'payload');
  const bytes = new ByteReader(source);
  let piece = await bytes.take(CHUNK_BYTES);
  for (let index = 0; ; index++) {
    // Only who has looked ahead knows which one is the last.
    const next = piece.length < CHUNK_BYTES ? Buffer.alloc(0) : await bytes.take(CHUNK_BYTES);
    yield sealPiece(key, pieceNonce(index, next.length === 0), piece);
    if (next.length === 0) return;
    piece = next;
  }
}

const damaged = (reason: string) => new AppError('BACKUP_DAMAGED', `the backup is damaged: ${reason}`);

async function readLine(bytes: ByteReader): Promise<string> {
  const line: number[] = [];
  while (line.length < HEADER_BYTES_MAX) {
    const [byte] = await bytes.take(1);
    if (byte === undefined) break;
    if (byte === 0x0a) return Buffer.from(line).toString('latin1');
    line.push(byte);
  }
  throw damaged('its header is malformed');
}

/** The file's key. Throws PASSPHRASE_WRONG, BACKUP_DAMAGED. */
async function openHeader(bytes: ByteReader, passphrase: string): Promise<Buffer> {
  const lines = [await readLine(bytes), await readLine(bytes), await readLine(bytes), await readLine(bytes)];
  const [version, stanza = '', wrapped = '', last = ''] = lines;
  const [, salt, workFactor] = /^-> scrypt ([A-Za-z0-9+/]{22}) ([1-9][0-9]?)$/.exec(stanza) ?? [];
  const [, mac] = /^--- ([A-Za-z0-9+/]{43})$/.exec(last) ?? [];
  if (version !== VERSION_LINE || salt === undefined || mac === undefined)
    throw damaged('its header is malformed');
  if (Number(workFactor) > WORK_FACTOR_MAX) throw damaged('its header asks for too much work');
  const wrapKey = await wrapKeyOf(passphrase, Buffer.from(salt, 'base64'), Number(workFactor));
  const fileKey = openPiece(wrapKey, Buffer.alloc(12), Buffer.from(wrapped, 'base64'));
  if (fileKey?.length !== FILE_KEY_BYTES)
    throw new AppError('PASSPHRASE_WRONG', 'this is not the passphrase that the backup was encrypted to');
  const header = `${lines.slice(0, 3).join('\n')}\n---`;
  if (!timingSafeEqual(headerMac(fileKey, header), Buffer.from(mac, 'base64')))
    throw damaged('its header was changed');
  return fileKey;
}

/** Opens what `sealWith` sealed. Throws PASSPHRASE_WRONG, and BACKUP_DAMAGED for what was changed or cut off. */
export async function* openWith(
  passphrase: string,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const bytes = new ByteReader(source);
  const fileKey = await openHeader(bytes, passphrase);
  const key = derive(fileKey, await bytes.take(NONCE_BYTES), 'payload');
  let sealed = await bytes.take(CHUNK_BYTES + TAG_BYTES);
  for (let index = 0; ; index++) {
    const next = await bytes.take(CHUNK_BYTES + TAG_BYTES);
    const isLast = next.length === 0;
    const piece = openPiece(key, pieceNonce(index, isLast), sealed);
    if (piece === undefined)
      throw damaged(isLast ? 'its end is missing or changed' : 'its bytes were changed');
    yield piece;
    if (isLast) return;
    sealed = next;
  }
}

/** Whether the first bytes of a file say that it is sealed. */
export const isSealed = (start: Uint8Array): boolean =>
  Buffer.from(start).toString('latin1').startsWith(`${VERSION_LINE}\n`);
