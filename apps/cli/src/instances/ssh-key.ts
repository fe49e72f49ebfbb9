import { access } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { AppError, LIMITS, parseSshKey } from '@skerry/protocol';
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

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function findDefault(sshDir: string): Promise<string> {
  for (const file of DEFAULT_FILES) {
    const path = join(sshDir, file);
    if (await exists(path)) return path;
  }
  throw new AppError('INVALID_PARAMETERS', `no public ssh key was found in ${sshDir}`, {
    details: { hint: 'make one with "ssh-keygen -t ed25519", or name one with --ssh-key FILE.pub' },
  });
}

/** Throws INVALID_SSH_KEY (a private key; not a key), INVALID_PARAMETERS (no file). */
export async function readSshKey(
  given: string | undefined,
  sshDir: string = join(homedir(), '.ssh'),
): Promise<SshKey> {
  const path = given ?? (await findDefault(sshDir));
  const text = await readTextFile(
    path,
    FILE_BYTES_MAX,
    () => new AppError('INVALID_SSH_KEY', `${path} is too large for a key`),
  );
  if (PRIVATE.test(text)) {
    const hint = (await exists(`${path}.pub`))
      ? `use ${path}.pub`
      : `"ssh-keygen -y -f ${path} > ${path}.pub" writes the public one`;
    throw new AppError('INVALID_SSH_KEY', `${path} is a private key; it stays with you`, {
      details: { hint },
    });
  }
  const publicKey = parseSshKey(text);
  const identity = path.endsWith('.pub') ? path.slice(0, -'.pub'.length) : undefined;
  const identityFile = identity !== undefined && (await exists(identity)) ? identity : undefined;
  return { publicKey, identityFile };
}
