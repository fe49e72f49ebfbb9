import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { acquireLock, createFileAtomically, makeDirectory, writeFileAtomically } from '@skerry/kit';
import { AppError, bytesToHex, createParser, hexToBytes, VRF_SUITES, type VrfEngine } from '@skerry/protocol';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { type Static, Type } from '@skerry/protocol/type';

/** One key is some 200 bytes; who rotates daily fills this in a decade. */
const FILE_BYTES_MAX = 1024 * 1024;
const SECRET_BYTES = 32;
/** For who replaces the key at the same time: a file is written meanwhile. */
const LOCK_WAIT_MS = 30_000;
const OTHERS_MASK = 0o077;
const SUITE = VRF_SUITES.edwards25519Tai;

const strict = { additionalProperties: false } as const;
const Retired = Type.Object(
  {
    epoch: Type.Integer({ minimum: 1 }),
    suite: Type.String({ maxLength: 64 }),
    public_key: Type.String({ pattern: '^[0-9a-f]{64,66}$' }),
    from: Type.Integer({ minimum: 0 }),
    until: Type.Integer({ minimum: 0 }),
  },
  strict,
);
const Current = Type.Object(
  {
    epoch: Type.Integer({ minimum: 1 }),
    suite: Type.Literal(SUITE.name),
    public_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    secret_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    from: Type.Integer({ minimum: 0 }),
  },
  strict,
);
const KeyFile = Type.Object(
  { version: Type.Literal(1), current: Current, retired: Type.Array(Retired) },
  strict,
);

/** What the file holds. Of a retired key only the public half is kept: nobody can answer with it any more. Times in Unix seconds. */
export type VrfKeyFile = Static<typeof KeyFile>;

const parseKeyFile: (value: unknown) => VrfKeyFile = createParser(KeyFile, 'the key file', 'INVALID_CONFIG');

/** What the file becomes when the key of an epoch is wanted: unchanged, or with a new key and the old one retired. Pure. */
function decideRotation(
  file: VrfKeyFile | undefined,
  epoch: number,
  fresh: Pick<VrfKeyFile['current'], 'public_key' | 'secret_key'>,
  nowSeconds: number,
): VrfKeyFile {
  if (file && file.current.epoch >= epoch) return file;
  const current = { epoch, suite: SUITE.name, ...fresh, from: nowSeconds };
  if (!file) return { version: 1, current, retired: [] };
  const { secret_key: _, ...old } = file.current;
  return {
    version: 1,
    current,
    retired: [...file.retired, { ...old, until: Math.max(nowSeconds, old.from) }],
  };
}

/** Errors never quote the file: a damaged secret is still one. */
async function readKeyFile(path: string): Promise<VrfKeyFile | undefined> {
  let text: string;
  try {
    const { mode, size } = await stat(path);
    if ((mode & OTHERS_MASK) !== 0)
      throw new AppError(
        'INVALID_CONFIG',
        `other users can read the secret key in ${path}; run: chmod 600 ${shellWord(path)}`,
      );
    if (size > FILE_BYTES_MAX) throw new AppError('INVALID_CONFIG', `${path} is too large for a key file`);
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof AppError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new AppError('INVALID_CONFIG', `cannot read ${path} (${code})`, { cause: error });
  }
  try {
    return parseKeyFile(JSON.parse(text));
  } catch {
    throw new AppError('INVALID_CONFIG', `${path} is not a file of keys for random values, or is corrupt`);
  }
}

/** The keys in use and before, in hexadecimal; none where there is no file. Throws INVALID_CONFIG. */
export async function readVrfPublicKeys(path: string): Promise<readonly string[]> {
  const file = await readKeyFile(path);
  return file ? [file.current, ...file.retired].map((key) => key.public_key) : [];
}

/** Complete or not at all, and on disk before the key is used: an answer by a key that is lost could not be given again. */
async function writeKeyFile(path: string, content: VrfKeyFile, isFirst: boolean): Promise<void> {
  await makeDirectory(dirname(path));
  const text = `${JSON.stringify(content, null, 2)}\n`;
  // Of several processes that start at once the first one's key stays.
  if (isFirst) await createFileAtomically(path, text, 0o600);
  else await writeFileAtomically(path, text, 0o600);
}

/** Throws INVALID_CONFIG, also where its keys do not match. */
async function readChecked(path: string, publicKeyOf: (secret: Uint8Array) => string) {
  const file = await readKeyFile(path);
  if (file && publicKeyOf(hexToBytes(file.current.secret_key)!) !== file.current.public_key)
    throw new AppError('INVALID_CONFIG', `${path} is corrupt: its keys do not match`);
  return file;
}

/** Of several processes that replace the key at once one does: the others would work with keys that no file has. */
async function lockKeyFile(path: string): Promise<Disposable> {
  const lock = await acquireLock(`${path}.lock`, { waitMs: LOCK_WAIT_MS });
  if (lock) return lock;
  throw new AppError(
    'INVALID_CONFIG',
    `another process has been replacing the key in ${path} for ${LOCK_WAIT_MS / 1_000} s; end it, then start again`,
  );
}

/**
 * The node's keys for randomness, from their file (mode 0600). Makes the first key, and a new one where the wanted epoch is
 * above the file's.
 *
 * @throws AppError INVALID_CONFIG where the file is open to others, damaged, or cannot be read or made
 */
export async function loadVrfKeys(
  path: string,
  engine: VrfEngine,
  epoch: number,
  nowSeconds: number,
): Promise<VrfKeyFile> {
  const ecvrf = engine.find(SUITE.id)!;
  const publicKeyOf = (secret: Uint8Array) => bytesToHex(ecvrf.createProver(secret).publicKey);
  const found = await readChecked(path, publicKeyOf);
  if (found && found.current.epoch >= epoch) return found;
  using _lock = found && (await lockKeyFile(path));
  const before = found && (await readChecked(path, publicKeyOf));
  const secret = randomBytes(SECRET_BYTES);
  const fresh = { public_key: publicKeyOf(secret), secret_key: bytesToHex(secret) };
  const after = decideRotation(before, epoch, fresh, nowSeconds);
  if (after === before) return after;
  try {
    await writeKeyFile(path, after, before === undefined);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new AppError('INVALID_CONFIG', `cannot create ${path} (${code})`, { cause: error });
  }
  return (await readKeyFile(path)) ?? after;
}
