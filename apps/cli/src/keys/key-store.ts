import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createSigner, generatePrivateKey } from '@skerry/client/signer';
import { createKeyFile, isMissing, makeDirectory, renameDurably } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';

/** Keys are files `keys/NAME.key` of mode 0600 in the person's configuration: 0x, 64 digits, a line end. */

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const SUFFIX = '.key';
const REPLACED = 'replaced';
const OTHERS_MASK = 0o077;

export interface KeyInfo {
  readonly name: string;
  readonly address: string;
  readonly path: string;
}

export interface LoadedKey extends KeyInfo {
  readonly privateKey: string;
}

const keyDir = (configDir: string) => join(configDir, 'keys');

function pathOf(configDir: string, name: string): string {
  if (!NAME.test(name)) {
    throw new AppError(
      'INVALID_PARAMETERS',
      'a key name has up to 64 ASCII letters, digits, dots, hyphens and underscores',
    );
  }
  return join(keyDir(configDir), `${name}${SUFFIX}`);
}

/** Throws KEY_NOT_FOUND, INVALID_CONFIG (others may read the file, or it holds no key). */
export async function loadKey(configDir: string, name: string): Promise<LoadedKey> {
  const path = pathOf(configDir, name);
  const text = await readKeyFile(path, name);
  const privateKey = text.trim();
  try {
    return { name, path, privateKey, address: createSigner(privateKey).address };
  } catch (error) {
    // The cause is left out: it might quote the file.
    if (error instanceof AppError)
      throw new AppError('INVALID_CONFIG', `${path} does not contain a private key`);
    throw error;
  }
}

async function readKeyFile(path: string, name: string): Promise<string> {
  try {
    const { mode } = await stat(path);
    if ((mode & OTHERS_MASK) !== 0) {
      throw new AppError('INVALID_CONFIG', `other users can read the key file ${path}`, {
        details: { hint: `chmod 600 ${shellWord(path)}` },
      });
    }
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw notFound(name, await listNames(dirname(path)));
  }
}

function notFound(name: string, known: readonly string[]): AppError {
  const make = `"skerry key new${name === 'default' ? '' : ` --name ${name}`}"`;
  const isFirst = known.length === 0;
  return new AppError('KEY_NOT_FOUND', `${isFirst ? 'no key yet: ' : ''}there is no key named ${name} here`, {
    details: { hint: isFirst ? `run ${make}` : `known: ${known.join(', ')}; ${make} makes it` },
  });
}

/** Of the keys in a directory, in order. */
async function listNames(directory: string): Promise<string[]> {
  const files = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const names = files.filter((file) => file.endsWith(SUFFIX)).map((file) => file.slice(0, -SUFFIX.length));
  return names.filter((name) => NAME.test(name)).sort();
}

/**
 * Makes a key file, complete or not at all.
 * @param force puts an existing key aside (keys/replaced/ADDRESS.key) instead of refusing
 * @throws AppError KEY_EXISTS
 */
export async function createKey(configDir: string, name: string, force: boolean): Promise<KeyInfo> {
  return keepKey(configDir, name, generatePrivateKey(), force);
}

const DIGITS = /^(?:0x)?([0-9a-fA-F]{64})$/;

/**
 * Keeps a key that was made elsewhere. What is wrong with its text is never quoted: it may be somebody's secret.
 * @param text 64 hexadecimal digits, with or without 0x
 * @throws AppError INVALID_PARAMETERS, KEY_EXISTS
 */
export async function importKey(
  configDir: string,
  name: string,
  text: string,
  force: boolean,
): Promise<KeyInfo> {
  const privateKey = readKey(text);
  if (privateKey === undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      'not a private key: expected 64 hexadecimal digits, optionally after 0x; seed phrases are not supported',
    );
  return keepKey(configDir, name, privateKey, force);
}

/** In the one spelling of key files; undefined where it is no key of the curve. */
function readKey(text: string): string | undefined {
  const digits = DIGITS.exec(text.trim())?.[1];
  if (digits === undefined) return undefined;
  try {
    const privateKey = `0x${digits.toLowerCase()}`;
    createSigner(privateKey);
    return privateKey;
  } catch {
    return undefined;
  }
}

async function keepKey(
  configDir: string,
  name: string,
  privateKey: string,
  force: boolean,
): Promise<KeyInfo> {
  const path = pathOf(configDir, name);
  if (force) await putAside(configDir, name, path);
  if (!(await createKeyFile(path, privateKey))) {
    throw new AppError('KEY_EXISTS', `a key named ${name} already exists`, {
      details: { hint: 'use --name for a second key, or --force to replace it' },
    });
  }
  return { name, path, address: createSigner(privateKey).address };
}

/** A key that was replaced by mistake can be put back: whoever has it owns what it signed. */
async function putAside(configDir: string, name: string, path: string): Promise<void> {
  const directory = join(keyDir(configDir), REPLACED);
  await makeDirectory(directory);
  const old = await loadKey(configDir, name).catch(() => undefined);
  const target = join(directory, `${old?.address ?? `${name}-${Date.now()}`}${SUFFIX}`);
  try {
    await renameDurably(path, target);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** A key whose file cannot be used, and why. */
export interface UnusableKey {
  readonly name: string;
  readonly error: AppError;
}

/** By name. One that cannot be used hides no other. */
export async function listKeys(configDir: string): Promise<{ keys: KeyInfo[]; unusable: UnusableKey[] }> {
  const keys: KeyInfo[] = [];
  const unusable: UnusableKey[] = [];
  for (const name of await listNames(keyDir(configDir))) {
    try {
      const { address, path } = await loadKey(configDir, name);
      keys.push({ name, address, path });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      unusable.push({ name, error });
    }
  }
  return { keys, unusable };
}
