import { execFile } from 'node:child_process';
import { access, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { AppError, LIMITS, parseSshKey } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { readTextFile } from '../files/read-text.ts';

/** Those that ssh itself tries, the best first. */
const DEFAULT_FILES = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub'];
const PRIVATE = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
/** Larger than any key, private or public. */
const FILE_BYTES_MAX = 4 * LIMITS.sshKeyChars;

export interface SshKey {
  /** One line in OpenSSH's format. */
  readonly publicKey: string;
  /** The private key's file, where it lies beside the public one. */
  readonly identityFile: string | undefined;
}

export interface SshKeyPlaces {
  /** Where a person's own keys lie. */
  readonly sshDir: string;
  /** Where the key lies that is made for a person who has none. */
  readonly madeFile: string;
  /** Told when that key was made. */
  readonly onMade: (file: string) => void;
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const run = promisify(execFile);

/** Throws PROGRAM_MISSING. */
async function makeKey(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'skerry', '-f', file]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new AppError('PROGRAM_MISSING', 'the program ssh-keygen is not installed (package openssh-client)');
  }
}

async function findDefault({ sshDir, madeFile, onMade }: SshKeyPlaces): Promise<string> {
  const made = `${madeFile}.pub`;
  for (const path of [...DEFAULT_FILES.map((file) => join(sshDir, file)), made]) {
    if (await exists(path)) return path;
  }
  await makeKey(madeFile);
  onMade(madeFile);
  return made;
}

/**
 * The key that a person names, else the first of their own, else one that is made for them and kept.
 * Throws INVALID_SSH_KEY (a private key; not a key), INVALID_PARAMETERS (no file), PROGRAM_MISSING.
 */
export async function readSshKey(given: string | undefined, places: SshKeyPlaces): Promise<SshKey> {
  const path = given ?? (await findDefault(places));
  const text = await readTextFile(
    path,
    FILE_BYTES_MAX,
    () => new AppError('INVALID_SSH_KEY', `${path} is too large for a key file`),
  );
  if (PRIVATE.test(text)) {
    const hint = (await exists(`${path}.pub`))
      ? `use ${path}.pub`
      : `"ssh-keygen -y -f ${shellWord(path)} > ${shellWord(`${path}.pub`)}" writes the public key`;
    throw new AppError('INVALID_SSH_KEY', `${path} is a private key; give the public key instead`, {
      details: { hint },
    });
  }
  const publicKey = parseSshKey(text);
  const identity = path.endsWith('.pub') ? path.slice(0, -'.pub'.length) : undefined;
  const identityFile = identity !== undefined && (await exists(identity)) ? identity : undefined;
  return { publicKey, identityFile };
}
