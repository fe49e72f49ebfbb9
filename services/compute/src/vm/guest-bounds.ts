import type { Logger } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';
import type { GroupLimits } from '../groups/control-group.ts';
import { GuestGroups } from '../groups/guest-groups.ts';
import { noteGroups } from '../groups/left-groups.ts';
import { findTrees, groupNameOf } from '../groups/trees.ts';
import { type DiskShare, NO_SHARE, TRANSLATION_CACHE_MIB } from './command-line.ts';
import { hasScopes, scopeCommand } from './guest-scope.ts';
import type { Accelerator, Machine } from './machine.ts';

const MIB = 1024 ** 2;
/**
 * What QEMU takes beside the guest's memory: code, stacks, tables of its disk image (32 MiB). An emulated guest that used all of its memory
 * was seen to take 135 MiB more, code that is kept translated among them. What is left is the part of its disk that the host keeps in memory.
 */
const QEMU_MIB = 256;
/** The kernel's tables of pages grow with the guest. */
const TABLES_SHARE = 1 / 64;
/** Of a core: QEMU's own threads work for the guest's devices, beside the cores that it has. */
const DEVICES_CPUS = 0.5;
/** QEMU's threads beside one for each core: 64 at most that write to disks, and a handful. */
const THREADS = 128;
/** Where nothing else holds guests back, the node and the machine's own services come first. */
const NICE = ['nice', '-n', '5'];

/** Enters control groups, then becomes what it is told to be. */
const ENTER = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';

/** What keeps each guest to what it has, so that it takes nothing that others have. */
export interface GuestBounds {
  readonly share: DiskShare;
  /** To be let go of when its QEMU runs, or will not. */
  keep(machine: Machine, accelerator: Accelerator): Keeper;
}

export interface Keeper extends Disposable {
  /** What QEMU is to be started by. */
  readonly command: readonly string[];
}

const keeperOf = (command: readonly string[], group?: Disposable): Keeper => ({
  command,
  [Symbol.dispose]: () => group?.[Symbol.dispose](),
});

export const NO_BOUNDS: GuestBounds = { share: NO_SHARE, keep: () => keeperOf([]) };

/** What a guest's QEMU may have of the machine. Pure. */
export function guestLimits(
  { cpu, memoryMib }: Pick<Machine, 'cpu' | 'memoryMib'>,
  accelerator: Accelerator,
): GroupLimits {
  const translatedMib = accelerator === 'tcg' ? TRANSLATION_CACHE_MIB : 0;
  return {
    memoryBytes: Math.ceil(memoryMib * (1 + TABLES_SHARE) + QEMU_MIB + translatedMib) * MIB,
    tasks: cpu + THREADS,
    cpus: cpu + DEVICES_CPUS,
    weight: cpu,
    maySwap: true,
  };
}

/**
 * Finds what this machine can hold guests by: systemd's scopes, control groups, or else no more than their priority.
 * @param log undefined where the node runs no machines: nothing is made then
 */
export function openBounds(
  config: DiskShare & Pick<ComputeConfig, 'dataDir'>,
  nodeId: string,
  log: Logger | undefined,
): GuestBounds {
  const { guestDiskRateMib, guestDiskOperations } = config;
  const share = { guestDiskRateMib, guestDiskOperations };
  if (!log) return { share, keep: () => keeperOf([]) };
  if (hasScopes())
    return {
      share,
      keep: (machine, accelerator) =>
        keeperOf(scopeCommand(`Skerry machine ${machine.machineId}`, guestLimits(machine, accelerator))),
    };
  const groups = openGroups(config.dataDir, nodeId, log);
  return { share, keep: (machine, accelerator) => enterGroup(groups, machine, accelerator, log) };
}

function openGroups(dataDir: string, nodeId: string, log: Logger): GuestGroups | undefined {
  try {
    const trees = findTrees();
    if (!trees) throw new Error('the control groups memory, pids and cpu are not all mounted');
    const groups = new GuestGroups(trees, groupNameOf(nodeId));
    noteGroups(dataDir, groups.homes);
    groups.prepare();
    return groups;
  } catch (error) {
    warnUnbounded(log, error);
    return undefined;
  }
}

function warnUnbounded(log: Logger, err: unknown): void {
  log.warn(
    { err },
    `guests are not held to their processor time and memory, for want of control groups: ${(err as Error).message}. A busy guest slows others down, and QEMU's own memory has no limit. Limits of disks and of the network hold, and guests run at a lower priority than this node`,
  );
}

function enterGroup(
  groups: GuestGroups | undefined,
  machine: Machine,
  accelerator: Accelerator,
  log: Logger,
): Keeper {
  try {
    if (!groups) return keeperOf(NICE);
    const group = groups.create(machine.machineId, guestLimits(machine, accelerator));
    return keeperOf(['sh', '-c', ENTER, 'sh', ...group.directories, '--'], group);
  } catch (error) {
    warnUnbounded(log, error);
    return keeperOf(NICE);
  }
}
