import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { createFileAtomically, makeDirectory } from './atomic-file.ts';

/** `0x`, 64 digits and a line end are 67 bytes; what is larger is not a key file and is not read. */
const KEY_FILE_BYTES_MAX = 256;
const OTHERS_MASK = 0o077;

/** Loaded with the first key: it takes a command as long as a bare Node does to start. */
const createCurve = () => process.getBuiltinModule('node:crypto').createECDH('secp256k1');

function generateKey(): string {
  const curve = createCurve();
  curve.generateKeys();
  return `0x${curve.getPrivateKey('hex').padStart(64, '0')}`;
}

function isOnCurve(digits: string): boolean {
  try {
    createCurve().setPrivateKey(digits, 'hex');
    return true;
  } catch {
    return false;
  }
}

/** The key in a file's text. Never quotes the text: a damaged key is still a secret. */
function parseKey(text: string, path: string): string {
  const [, digits] = /^0x([0-9a-fA-F]{64})\s*$/.exec(text) ?? [];
  if (digits === undefined || !isOnCurve(digits)) {
    throw new AppError(
      'INVALID_CONFIG',
      `${path} does not contain a private key: expected 0x and 64 hexadecimal digits within the range of secp256k1`,
    );
  }
  return `0x${digits.toLowerCase()}`;
}

async function readKey(file: FileHandle, path: string): Promise<string> {
  const stat = await file.stat();
  if (!stat.isFile()) throw new AppError('INVALID_CONFIG', `${path} is not a file`);
  if ((stat.mode & OTHERS_MASK) !== 0) {
    const mode = (stat.mode & 0o777).toString(8).padStart(4, '0');
    throw new AppError(
      'INVALID_CONFIG',
      `other users can read the private key in ${path} (mode ${mode}); run: chmod 600 ${shellWord(path)}`,
    );
  }
  const buffer = Buffer.alloc(KEY_FILE_BYTES_MAX + 1);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
  return parseKey(bytesRead > KEY_FILE_BYTES_MAX ? '' : buffer.toString('latin1', 0, bytesRead), path);
}

async function openExisting(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new AppError('INVALID_CONFIG', `cannot read ${path} (${code})`, { cause: error });
  }
}

/**
 * Makes a file of a private key (mode 0600), complete or not at all.
 *
 * @returns false where there is a file already; it stays as it is
 */
export async function createKeyFile(path: string, privateKey: string): Promise<boolean> {
  await makeDirectory(dirname(path));
  return createFileAtomically(path, `${privateKey}\n`, 0o600);
}

async function readAndClose(file: FileHandle, path: string): Promise<string> {
  try {
    return await readKey(file, path);
  } finally {
    await file.close();
  }
}

/**
 * The private key in a file that somebody named, which is never made: a mistyped name would sign with a key that nobody knows.
 *
 * @returns `0x` and 64 lower-case hexadecimal digits
 * @throws AppError INVALID_CONFIG where there is no such file, it is open to others, is no key, or cannot be read
 */
export async function loadKeyFile(path: string): Promise<string> {
  const file = await openExisting(path);
  if (!file) throw new AppError('INVALID_CONFIG', `there is no key file ${path}`);
  return readAndClose(file, path);
}

/**
 * The private key that a service is known by, from its file; the first call makes the file (mode 0600, complete or
 * absent, also when several processes start at once).
 *
 * @returns `0x` and 64 lower-case hexadecimal digits
 * @throws AppError INVALID_CONFIG where the file is open to others, is no key, or can be neither read nor made
 */
export async function loadOrCreateKeyFile(path: string): Promise<string> {
  const existing = await openExisting(path);
  if (existing) return readAndClose(existing, path);
  try {
    await createKeyFile(path, generateKey());
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new AppError('INVALID_CONFIG', `cannot create ${path} (${code})`, { cause: error });
  }
  return readAndClose(await open(path, 'r'), path);
}
