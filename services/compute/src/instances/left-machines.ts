import { isItemHash64 } from '@skerry/protocol';
import type { ComputeConfig } from '../config.ts';
import { machineIdOf } from '../network/names.ts';
import { openNetwork } from '../network/open.ts';
import { loadIdentity } from '../publish/identity.ts';
import { searchQemu } from '../vm/process.ts';
import { instanceDirectory, listInstanceNames } from './record/record.ts';

/**
 * The instances whose machines run below a data directory, also where the record of one cannot be read.
 *
 * @param known instances that are not looked for
 */
export async function findLeftMachines(
  dataDir: string,
  known: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  const running: string[] = [];
  const names = await listInstanceNames(dataDir);
  for (const id of names.filter((name) => isItemHash64(name) && !known.has(name)))
    if ((await searchQemu(instanceDirectory(dataDir, id), machineIdOf(id))) !== undefined) running.push(id);
  return running;
}

/** Takes a node's part of the kernel's network away, where its process and its machines have ended. The next start puts it up again. */
export async function clearLeftNetwork(config: ComputeConfig): Promise<void> {
  const identity = await loadIdentity(config.dataDir, config.ipv6Prefix);
  const { network } = await openNetwork(config, identity, null);
  await network.clear();
}
