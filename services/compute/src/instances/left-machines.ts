import type { Logger } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';
import { machineIdOf } from '../network/names.ts';
import { openNetwork } from '../network/open.ts';
import { loadIdentity } from '../publish/identity.ts';
import { searchQemu } from '../vm/process.ts';
import { instanceDirectory, readRecords } from './record/record.ts';

/** The instances whose machines run below a data directory. */
export async function findLeftMachines(dataDir: string, log: Logger): Promise<string[]> {
  const running: string[] = [];
  for (const { id } of await readRecords(dataDir, log))
    if ((await searchQemu(instanceDirectory(dataDir, id), machineIdOf(id))) !== undefined) running.push(id);
  return running;
}

/** Takes a node's part of the kernel's network away, where its process and its machines have ended. The next start puts it up again. */
export async function clearLeftNetwork(config: ComputeConfig): Promise<void> {
  const identity = await loadIdentity(config.dataDir, config.ipv6Prefix);
  const { network } = await openNetwork(config, identity, null);
  await network.clear();
}
