import type { InstanceView } from '@skerry/protocol';
import { searchQemu } from '../vm/process.ts';
import { findData } from './arrival.ts';
import type { InstanceDeps } from './deps.ts';
import { estimate } from './disks/promised.ts';
import type { Place } from './place.ts';
import {
  type InstanceRecord,
  instanceDirectory,
  type LeavingReason,
  newRecord,
  readRecord,
  setRecordAside,
  writeRecord,
} from './record/record.ts';
import { wantedOf } from './wanted.ts';

/**
 * Notes that an instance is to leave this node whose record could not be read when the node started. It leaves as every other one does:
 * its machine ends, and what it has here is put aside for its grace.
 *
 * @param view what the network says of it; undefined where its owner forgot it, and with it to whom it belonged
 * @param nowMs later than all that was told before
 * @returns undefined where nothing is here of it
 */
export async function noteDeparture(
  { dataDir, log, addresses }: Pick<InstanceDeps, 'dataDir' | 'log' | 'addresses'>,
  { id, machineId }: Place,
  leaving: LeavingReason,
  view: InstanceView | undefined,
  nowMs: number,
): Promise<InstanceRecord | undefined> {
  const directory = instanceDirectory(dataDir, id);
  // What failed then may not fail now.
  const old = await readRecord(dataDir, id, log);
  const found = old ?? (await findData(directory, (await searchQemu(directory, machineId)) !== undefined));
  if (!old && !found.isFound) return undefined;
  // It finds its disk, and with it the address of the link, if it comes back.
  if (old?.ipv4 && leaving === 'moved') addresses.keep(id, old.ipv4.link);
  const { wanted: size } = await estimate(dataDir, id);
  const unknown = { isRunning: false, restartId: null, image: '', sshKey: '', allowedPorts: [], ...size };
  const record = { ...newRecord(id, view ? wantedOf(view) : unknown, nowMs), ...found, leaving };
  if (!old) await setRecordAside(dataDir, id);
  await writeRecord(dataDir, record);
  return record;
}
