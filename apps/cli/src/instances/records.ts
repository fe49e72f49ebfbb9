import { join, resolve } from 'node:path';
import { makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit/files';

/** What this machine remembers of an instance: which private key opens it, and which node ran it when it was deleted here. */
export interface InstanceRecord {
  readonly instance_id: string;
  readonly identity_file: string | null;
  readonly node_address?: string;
}

const recordDir = (configDir: string) => join(configDir, 'instances');

export async function rememberInstance(
  configDir: string,
  instanceId: string,
  identityFile: string | undefined,
): Promise<void> {
  const identity_file = identityFile === undefined ? null : resolve(identityFile);
  await writeRecord(configDir, { instance_id: instanceId, identity_file });
}

/** After a deletion no core node tells any more which node keeps the disk. */
export async function rememberNode(
  configDir: string,
  instanceId: string,
  nodeAddress: string,
): Promise<void> {
  const { identity_file = null } = (await findRecord(configDir, instanceId)) ?? {};
  await writeRecord(configDir, { instance_id: instanceId, identity_file, node_address: nodeAddress });
}

async function writeRecord(configDir: string, record: InstanceRecord): Promise<void> {
  const directory = recordDir(configDir);
  await makeDirectory(directory);
  const path = join(directory, `${record.instance_id}.json`);
  await writeFileAtomically(path, `${JSON.stringify(record, null, 2)}\n`, 0o600);
}

/** Undefined for an instance that was created elsewhere. */
export async function findRecord(configDir: string, instanceId: string): Promise<InstanceRecord | undefined> {
  const text = await readTextIfAny(join(recordDir(configDir), `${instanceId}.json`));
  return text === undefined ? undefined : (JSON.parse(text) as InstanceRecord);
}
