import { AppError } from '@skerry/protocol/forms';
import { ByteReader } from './bytes.ts';

/** Files in one stream, as POSIX says (pax, IEEE Std 1003.1): any tar reads it. Only files and directories, in the order of their coming. */

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
/** What eleven octal digits hold; larger ones are told in an extended header. */
const OCTAL_SIZE_MAX = 8 ** 11 - 1;
/** Of an extended header, which tells a long path or a large size. */
const EXTENDED_BYTES_MAX = 16 * 1024;
const PATH_BYTES_MAX = 4096;

export interface TarEntry {
  /** With slashes, without one at the beginning or the end, and without steps upward. */
  readonly path: string;
  readonly kind: 'file' | 'directory';
  readonly mode: number;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
}

export interface TarMember extends TarEntry {
  /** To be read before the next member is asked for; what is left of it is passed over. */
  readonly content: AsyncIterable<Buffer>;
}

const damaged = (reason: string) => new AppError('BACKUP_DAMAGED', `the backup is damaged: ${reason}`);

const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;

function encodeHeader(name: string, type: string, entry: Pick<TarEntry, 'mode' | 'sizeBytes' | 'mtimeMs'>) {
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, 0, NAME_BYTES_MAX, 'utf8');
  header.write(octal(entry.mode & 0o7777, 7), 100, 'latin1');
  header.write(octal(0, 7), 108, 'latin1');
  header.write(octal(0, 7), 116, 'latin1');
  header.write(octal(Math.min(entry.sizeBytes, OCTAL_SIZE_MAX), 11), 124, 'latin1');
  header.write(octal(Math.max(0, Math.floor(entry.mtimeMs / 1000)), 11), 136, 'latin1');
  header.write(type, 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  header.write(`${octal(checksumOf(header), 6)} `, 148, 'latin1');
  return header;
}

/** The sum of all bytes, the checksum's own counted as spaces. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 0x20;
  for (const [at, byte] of header.entries()) if (at < 148 || at >= 156) sum += byte;
  return sum;
}

const paddingOf = (sizeBytes: number) => (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;

/** `LENGTH key=value\n`, where the length counts itself. */
function encodeRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + 1;
  while (length !== bytes + String(length).length) length = bytes + String(length).length;
  return `${length}${rest}`;
}

/** What stands ahead of the content. */
export function encodeEntry(entry: TarEntry): Buffer {
  const name = entry.kind === 'directory' ? `${entry.path}/` : entry.path;
  const type = entry.kind === 'directory' ? '5' : '0';
  const isPlain = /^[\x20-\x7e]*$/.test(name) && name.length <= NAME_BYTES_MAX;
  const records = [
    ...(isPlain ? [] : [encodeRecord('path', name)]),
    ...(entry.sizeBytes <= OCTAL_SIZE_MAX ? [] : [encodeRecord('size', String(entry.sizeBytes))]),
  ].join('');
  const header = encodeHeader(isPlain ? name : 'long-path', type, entry);
  if (records === '') return header;
  const body = Buffer.from(records);
  const extended = encodeHeader('extended', 'x', { mode: 0o600, sizeBytes: body.length, mtimeMs: 0 });
  return Buffer.concat([extended, body, Buffer.alloc(paddingOf(body.length)), header]);
}

/** What stands behind the content. */
export const encodePadding = (sizeBytes: number): Buffer => Buffer.alloc(paddingOf(sizeBytes));

/** What stands at the very end. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

const textAt = (header: Buffer, from: number, length: number) => {
  const field = header.subarray(from, from + length);
  const end = field.indexOf(0);
  return field.subarray(0, end < 0 ? length : end).toString('utf8');
};

function numberAt(header: Buffer, from: number, length: number): number {
  const text = textAt(header, from, length).trim();
  if (!/^[0-7]+$/.test(text)) throw damaged('a header holds no number');
  return Number.parseInt(text, 8);
}

/** `path` and `size` of an extended header. */
function decodeRecords(body: Buffer): { path?: string; size?: number } {
  const found: { path?: string; size?: number } = {};
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at);
    const length = Number(body.subarray(at, space).toString('latin1'));
    if (space < 0 || !Number.isInteger(length) || length <= space - at + 1 || at + length > body.length)
      throw damaged('an extended header is malformed');
    const [key = '', ...value] = body
      .subarray(space + 1, at + length - 1)
      .toString('utf8')
      .split('=');
    if (key === 'path') found.path = value.join('=');
    if (key === 'size') found.size = Number(value.join('='));
    at += length;
  }
  return found;
}

/** Refuses what could lead out of the folder that it is unpacked into. */
function checkPath(path: string): string {
  const parts = path.split('/');
  const isInside = parts.every(
    (part) => part !== '' && part !== '.' && part !== '..' && !part.includes('\0'),
  );
  if (!isInside || Buffer.byteLength(path) > PATH_BYTES_MAX) throw damaged('a path leads out of the folder');
  return path;
}

function decodeEntry(header: Buffer, records: { path?: string; size?: number }): TarEntry {
  const type = textAt(header, 156, 1);
  const sizeBytes = records.size ?? numberAt(header, 124, 12);
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw damaged('a size is malformed');
  if (type !== '0' && type !== '5') throw damaged('it holds something other than files and directories');
  const name = records.path ?? textAt(header, 0, NAME_BYTES_MAX);
  return {
    path: checkPath(name.replace(/\/$/, '')),
    kind: type === '5' ? 'directory' : 'file',
    mode: numberAt(header, 100, 8) & 0o777,
    sizeBytes: type === '5' ? 0 : sizeBytes,
    mtimeMs: numberAt(header, 136, 12) * 1000,
  };
}

/** The members of a stream. Throws BACKUP_DAMAGED; memory is bounded whatever comes. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarMember> {
  const bytes = new ByteReader(source);
  let records: { path?: string; size?: number } = {};
  for (;;) {
    const header = await bytes.take(BLOCK_BYTES);
    if (header.length < BLOCK_BYTES) throw damaged('it ends too early');
    if (header.every((byte) => byte === 0)) break;
    if (numberAt(header, 148, 8) !== checksumOf(header)) throw damaged('a header has another checksum');
    if (textAt(header, 156, 1) === 'x') {
      records = decodeRecords(await readExtended(bytes, numberAt(header, 124, 12)));
      continue;
    }
    const entry = decodeEntry(header, records);
    records = {};
    yield* readMember(bytes, entry);
  }
  // Whatever was compressed or sealed shows only at its end whether it is whole.
  for await (const rest of bytes.pass(Number.POSITIVE_INFINITY))
    if (rest.some((byte) => byte !== 0)) throw damaged('something follows its end');
}

async function readExtended(bytes: ByteReader, length: number): Promise<Buffer> {
  if (length > EXTENDED_BYTES_MAX) throw damaged('an extended header is too long');
  const body = await bytes.take(length);
  await bytes.take(paddingOf(length));
  return body;
}

async function* readMember(bytes: ByteReader, entry: TarEntry): AsyncGenerator<TarMember> {
  let left = entry.sizeBytes;
  const content = (async function* () {
    for await (const part of bytes.pass(left)) {
      left -= part.length;
      yield part;
    }
  })();
  yield { ...entry, content };
  for await (const _ of content);
  for await (const part of bytes.pass(left)) left -= part.length;
  if (left > 0) throw damaged('it ends too early');
  const padding = paddingOf(entry.sizeBytes);
  if ((await bytes.take(padding)).length < padding) throw damaged('it ends too early');
}
