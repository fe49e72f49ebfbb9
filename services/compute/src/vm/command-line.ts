import type { ComputeConfig } from '../config.ts';
import { READY_PORT } from '../images/guest-files.ts';
import { type Accelerator, MACHINE_FILES, type Machine, type Volume } from './machine.ts';

/** Names of QEMU objects that are spoken of over QMP. */
export const CHARDEV = { ready: 'ready', console: 'console' } as const;

/** The machine's disk, as QEMU is spoken to about it. */
export const DISK_DEVICE = 'disk0';

/**
 * Code that QEMU keeps translated: without a limit it grows by some 200 MiB for each guest. Where it is full, all is translated
 * anew: while Debian boots twice with this, and eight times with half of it.
 */
export const TRANSLATION_CACHE_MIB = 128;
/** The console's last words are kept in QEMU's memory, where a guest cannot fill the host's disk with them. A power of two. */
const CONSOLE_BYTES = 262_144;

/** A guest's kernel needs some hundred bytes. Without a limit one that reads without end keeps QEMU's own thread busy, beside the cores that it has. */
const ENTROPY_BYTES_PER_SECOND = 4_096;

const MIB = 1024 ** 2;
/** What all disks of a guest are counted in. */
const THROTTLE_GROUP = 'guest';

/** What a guest may have of the disk that all of them share. 0: as much as there is. */
export type DiskShare = Pick<ComputeConfig, 'guestDiskRateMib' | 'guestDiskOperations'>;

export const NO_SHARE: DiskShare = { guestDiskRateMib: 0, guestDiskOperations: 0 };

/** `qemu-system-x86_64`'s own name in the process list. */
function processNameOf(id: string): string {
  return `skerry-${id.slice(0, 8)}`;
}

/** `00112233445566778899aabbccddeeff` -> `00112233-4455-6677-8899-aabbccddeeff` */
export function uuidOf(machineId: string): string {
  return machineId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** A value inside one of QEMU's comma-separated options: a comma is written twice. */
const value = (text: string) => text.replaceAll(',', ',,');

/**
 * QEMU's arguments for a machine. q35, because `microvm` without its timers hangs under software emulation on a busy host.
 * Where the image is of the node's making, its kernel is given directly: no firmware screen, no boot loader. A guest that powers off leaves QEMU paused, so that a
 * compute node which was away still learns that it was the guest's own wish.
 */
export function qemuArguments(
  machine: Machine,
  accelerator: Accelerator,
  confines: Confines,
  share: DiskShare = NO_SHARE,
): string[] {
  const { id, machineId, cpu, memoryMib, boot, disk, seed, volumes, tap, mac } = machine;
  const shared = throttleOptions(share);
  return [
    ['-name', `guest=${processNameOf(id)},process=${processNameOf(id)}`],
    ['-uuid', uuidOf(machineId)],
    ['-nodefaults'],
    ['-no-user-config'],
    ['-display', 'none'],
    ['-machine', 'q35,usb=off,vmport=off'],
    acceleratorArguments(accelerator),
    ['-smp', `cpus=${cpu}`],
    ['-m', `size=${memoryMib}M`],
    ['-action', 'reboot=reset,shutdown=pause'],
    ...bootArguments(boot, machineId),
    ['-chardev', `ringbuf,id=${CHARDEV.console},size=${CONSOLE_BYTES}`],
    ['-serial', `chardev:${CHARDEV.console}`],
    ['-qmp', `unix:${MACHINE_FILES.qmp},server=on,wait=off`],
    ['-pidfile', MACHINE_FILES.pid],
    ['-device', `virtio-rng-pci,max-bytes=${ENTROPY_BYTES_PER_SECOND},period=1000`],
    ['-device', 'virtio-serial-pci'],
    ['-chardev', `null,id=${CHARDEV.ready}`],
    ['-device', `virtserialport,chardev=${CHARDEV.ready},id=${CHARDEV.ready},name=${READY_PORT}`],
    ['-netdev', `tap,id=net0,ifname=${tap},script=no,downscript=no`],
    ['-device', `virtio-net-pci,netdev=net0,mac=${mac},romfile=`],
    ['-drive', `id=${DISK_DEVICE},if=none,file=${value(disk)},format=qcow2,discard=unmap${shared}`],
    // A kernel that is given has the first place itself.
    ['-device', `virtio-blk-pci,drive=${DISK_DEVICE}${boot === 'firmware' ? ',bootindex=0' : ''}`],
    ['-drive', `id=seed0,if=none,file=${value(seed)},format=raw,readonly=on${shared}`],
    ['-device', 'virtio-blk-pci,drive=seed0'],
    ...volumes.flatMap((volume, index) => volumeArguments(volume, index, shared)),
    ...confinedArguments(confines),
  ].flat();
}

/** What a machine has, by the arguments of its QEMU; 0 where they do not say it. Pure. */
export function sizeIn(args: readonly string[]): Pick<Machine, 'cpu' | 'memoryMib'> {
  const numberIn = (option: string, form: RegExp) =>
    Number(form.exec(args[args.indexOf(option) + 1] ?? '')?.[1] ?? 0);
  return { cpu: numberIn('-smp', /^cpus=([0-9]+)$/), memoryMib: numberIn('-m', /^size=([0-9]+)M$/) };
}

/**
 * All disks of a guest have one share together: those of a group say the same (qemu-options, "throttling"; QEMU's docs/throttle.txt).
 * What the node copies of a disk while the guest runs is not counted. Pure.
 */
function throttleOptions({ guestDiskRateMib, guestDiskOperations }: DiskShare): string {
  const limits = [
    guestDiskRateMib > 0 && `throttling.bps-total=${guestDiskRateMib * MIB}`,
    guestDiskOperations > 0 && `throttling.iops-total=${guestDiskOperations}`,
  ].filter((limit) => limit !== false);
  return limits.length === 0 ? '' : `,${[`throttling.group=${THROTTLE_GROUP}`, ...limits].join(',')}`;
}

const volumeArguments = ({ file, isReadOnly }: Volume, index: number, shared: string): string[][] => [
  [
    '-drive',
    `id=volume${index},if=none,file=${value(file)},format=raw,${isReadOnly ? 'readonly=on' : 'discard=unmap'}${shared}`,
  ],
  ['-device', `virtio-blk-pci,drive=volume${index}`],
];

/** With a kernel of the node's, or by the boot sector of the disk (SeaBIOS). */
function bootArguments(boot: Machine['boot'], machineId: string): string[][] {
  if (boot === 'firmware') return [];
  return [
    ['-kernel', boot.kernel],
    ['-initrd', boot.initrd],
    [
      '-append',
      `console=ttyS0 quiet systemd.show_status=yes net.ifnames=0 panic=1 systemd.machine_id=${machineId}`,
    ],
  ];
}

/** A guest of the self-test: the kernel, an initrd that says it is alive, a serial line on standard output. */
export function probeArguments(
  kernel: string,
  initrd: string,
  probeWord: string,
  accelerator: Accelerator,
  confines: Confines,
): string[] {
  return [
    ['-nodefaults'],
    ['-no-user-config'],
    ['-display', 'none'],
    ['-machine', 'q35,usb=off,vmport=off'],
    acceleratorArguments(accelerator),
    ['-m', 'size=256M'],
    ['-no-reboot'],
    ['-kernel', kernel],
    ['-initrd', initrd],
    ['-append', `console=ttyS0 quiet panic=-1 ${probeWord}`],
    ['-serial', 'stdio'],
    ...confinedArguments(confines),
  ].flat();
}

/** Where QEMU lives, once it has opened what it was given. */
export interface Confines {
  /** User and group that only this machine has. */
  readonly uid: number;
  /** Its root. */
  readonly root: string;
}

/**
 * QEMU opens its disks, its tap and /dev/kvm, then shuts itself in and becomes a user without rights, before the guest's
 * first instruction. The filter of system calls lets it change its user, which it has to; without capabilities, and with
 * no_new_privs, which the filter brings along, that gains nothing any more.
 */
function confinedArguments({ uid, root }: Confines): string[][] {
  return [
    ['-chroot', root],
    ['-runas', `${uid}:${uid}`],
    ['-sandbox', 'on,obsolete=deny,spawn=deny,resourcecontrol=deny'],
  ];
}

function acceleratorArguments(accelerator: Accelerator): string[] {
  return accelerator === 'kvm'
    ? ['-accel', 'kvm', '-cpu', 'host']
    : ['-accel', `tcg,tb-size=${TRANSLATION_CACHE_MIB}`, '-cpu', 'max'];
}
