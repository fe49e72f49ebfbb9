import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256Hex } from '@skerry/protocol';
import { run } from '../host/run.ts';
import type { VmWorld } from './vm-world.ts';

/** A file of the network with a file system. */
async function storeVolume({ core }: VmWorld): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volume-'));
  try {
    await mkdir(join(directory, 'root'));
    await writeFile(join(directory, 'root/said'), 'from a volume');
    const path = join(directory, 'volume.raw');
    await run('mke2fs', ['-q', '-t', 'ext4', '-d', join(directory, 'root'), path, '1M']);
    const bytes = await readFile(path);
    return (await core.client.storeFile(new Blob([bytes]), 'volume', sha256Hex(bytes))).item_hash;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A volume of each kind, as an instance's message names them. */
export const volumesOf = async (world: VmWorld) => [
  { ref: await storeVolume(world), mount: '/opt/given' },
  { ephemeral: true, size_mib: 64, mount: '/srv/scratch' },
  { persistence: 'host', name: 'kept', size_mib: 32, mount: '/srv/kept' },
];
