import { readFile } from 'node:fs/promises';
import { Slots } from '@skerry/kit';
import { hostnameOf } from '@skerry/protocol';
import type { GuestUsageListView, GuestUsageView } from '@skerry/protocol/api/compute/usage';
import { type ProcessUsage, readProcessUsage } from '../host/process-usage.ts';
import { promisedFiles, takenBytes } from '../instances/disks/promised.ts';
import { type InstanceRecord, instanceDirectory } from '../instances/record/record.ts';
import type { InstanceWorker } from '../instances/worker/worker.ts';
import type { Programs, SandboxUsage } from '../programs/programs.ts';
import { isQemuOf } from '../vm/process.ts';
import { type DeviceCounts, parseDevices } from './devices.ts';

/** Files are read by few threads, which all of the node's work shares. */
const READ_AT_ONCE = 4;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
/** The interfaces of the network namespace that this process is in. */
const DEVICES = '/proc/self/net/dev';

export type Looked = Pick<InstanceWorker, 'place' | 'record' | 'pid'>;

export interface UsageSources {
  readonly dataDir: string;
  readonly instances: { list(): readonly Looked[] };
  /** Undefined where the node runs none. */
  readonly programs: Pick<Programs, 'readUsage'> | undefined;
  readonly now: () => number;
}

const iso = (timeMs: number) => new Date(timeMs).toISOString();

/** What an instance takes. A tap receives what the guest sends. Pure. */
export function instanceUsage(
  { id, wanted, status }: Pick<InstanceRecord, 'id' | 'wanted' | 'status'>,
  {
    process,
    device,
    diskBytes,
  }: {
    readonly process: ProcessUsage | undefined;
    readonly device: DeviceCounts | undefined;
    readonly diskBytes: number;
  },
): GuestUsageView {
  return {
    kind: 'instance',
    item_hash: id,
    owner: wanted.owner ?? null,
    host_name: hostnameOf(id),
    phase: status?.phase ?? null,
    since: process ? iso(process.startedAtMs) : null,
    cpu: { seconds: process?.cpuSeconds ?? null, granted: wanted.cpu },
    memory: { bytes: process?.memoryBytes ?? null, granted_bytes: wanted.memoryMib * MIB },
    disk: { bytes: diskBytes, granted_bytes: wanted.diskGib * GIB },
    network: device
      ? {
          in_bytes: device.sentBytes,
          out_bytes: device.receivedBytes,
          in_packets: device.sentPackets,
          out_packets: device.receivedPackets,
        }
      : null,
  };
}

const sumOf = (numbers: readonly (number | null)[]): number | null =>
  numbers.reduce((sum, one) => (sum === null || one === null ? null : sum + one), 0);

/** What a program takes, by its sandboxes: one at least. Pure. */
export function programUsage(hash: string, sandboxes: readonly SandboxUsage[]): GuestUsageView {
  const all = <T>(field: (one: SandboxUsage) => T) => sandboxes.map(field);
  return {
    kind: 'program',
    item_hash: hash,
    // Those that are part of the node are nobody's.
    owner: sandboxes[0]?.owner || null,
    host_name: null,
    phase: null,
    since: iso(Math.min(...all(({ startedAtMs }) => startedAtMs))),
    cpu: {
      seconds: sumOf(all(({ cpuSeconds }) => cpuSeconds)),
      granted: sumOf(all(({ cpus }) => cpus)) ?? 0,
    },
    memory: {
      bytes: sumOf(all(({ memoryBytes }) => memoryBytes)),
      granted_bytes: (sumOf(all(({ reservedMib }) => reservedMib)) ?? 0) * MIB,
    },
    disk: null,
    network: null,
  };
}

/** Numbers of processes are used again: only what is the machine's QEMU still is looked at. */
async function readQemu(dataDir: string, { place, pid }: Looked): Promise<ProcessUsage | undefined> {
  const directory = instanceDirectory(dataDir, place.id);
  if (pid === undefined || !(await isQemuOf(pid, directory, place.machineId))) return undefined;
  return readProcessUsage(pid);
}

async function readDiskBytes(dataDir: string, record: InstanceRecord): Promise<number> {
  let sum = 0;
  for (const { path } of promisedFiles(dataDir, record)) sum += await takenBytes(path);
  return sum;
}

/** What every instance of the node takes, running or not, and every program that is in memory. */
export async function readUsage(sources: UsageSources): Promise<GuestUsageListView> {
  const { dataDir, instances, programs, now } = sources;
  const devices = parseDevices(await readFile(DEVICES, 'utf8'));
  const slots = new Slots(READ_AT_ONCE);
  const readInstance = async (worker: Looked) => {
    const { record, place } = worker;
    const process = await readQemu(dataDir, worker);
    const diskBytes = await readDiskBytes(dataDir, record);
    return instanceUsage(record, { process, device: devices.get(place.tap), diskBytes });
  };
  const machines = await Promise.all(instances.list().map((worker) => slots.run(() => readInstance(worker))));
  const byProgram = Map.groupBy(programs?.readUsage() ?? [], ({ hash }) => hash);
  const called = [...byProgram].map(([hash, sandboxes]) => programUsage(hash, sandboxes));
  return { read_at: iso(now()), guests: [...machines, ...called] };
}
