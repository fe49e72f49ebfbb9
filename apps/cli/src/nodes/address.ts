import { existsSync } from 'node:fs';
import { chown, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createSigner } from '@skerry/client/signer';
import { keepOwnKey, refuseHalfRestored } from '@skerry/kit';
import { loadKeyFile, makeDirectory } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { describeNode } from '../backup/role.ts';
import type { Context } from '../context.ts';
import type { DaemonOptions } from '../network/daemon.ts';
import type { DaemonName } from '../network/daemon-names.ts';
import { readLocalPlace } from '../networks/local.ts';

/** Root may make the key for the daemon's own user, whose directory it is. */
async function giveToOwner(path: string, directory: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = await stat(directory);
  await chown(path, uid, gid);
}

/** Whoever asked for the daemon of "skerry up" is told that a new key is that of another one. */
async function noteNew(
  { paths, output }: Context,
  { role, path, file }: { readonly role: DaemonName; readonly path: string; readonly file: string },
): Promise<void> {
  const devnet = join((await readLocalPlace(paths.data)).dataDir, role);
  if (!existsSync(join(devnet, file))) return;
  const variable = `SKERRY_${role.toUpperCase()}_DATA_DIR`;
  output.note(
    `${path} is a new key; the ${role} daemon of "skerry up" has its own: ${variable}=${shellWord(devnet)} skerry ${role} address`,
  );
}

/**
 * The address that a daemon signs with, so that others can be told to trust it before it runs. Makes the key as the daemon itself
 * would at its first start. Throws INVALID_CONFIG, also where the key of a daemon that has worked is gone, and INVALID_PARAMETERS.
 */
export async function showAddress(context: Context, role: DaemonName, options: DaemonOptions): Promise<void> {
  const { keeping, directory } = await describeNode(context, role, options);
  if (keeping.identity === undefined)
    throw new AppError('INVALID_PARAMETERS', `a ${role} daemon has no address`);
  const path = join(directory, keeping.identity);
  const isNew = !existsSync(path);
  refuseHalfRestored(directory);
  await makeDirectory(directory);
  await keepOwnKey(keeping, directory);
  const { address } = createSigner(await loadKeyFile(path));
  if (isNew) await giveToOwner(path, directory);
  if (isNew) await noteNew(context, { role, path, file: keeping.identity });
  context.output.result({ role, address, key_file: path }, address);
}
