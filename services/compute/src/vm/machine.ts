/** How guests run on this machine. */
export type Accelerator = 'kvm' | 'tcg';

/** A disk beside the machine's own. */
export interface Volume {
  /** In the instance's directory, raw. */
  readonly file: string;
  readonly isReadOnly: boolean;
  /** What it takes of the instance's room. */
  readonly sizeMib: number;
  /** Where the guest finds it; null where its owner mounts it. */
  readonly mount: string | null;
}

/** Everything QEMU has to know about one virtual machine. Paths without a slash are in the instance's directory. */
export interface Machine {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** 32 hexadecimal digits, the guest's /etc/machine-id and its SMBIOS UUID. */
  readonly machineId: string;
  readonly cpu: number;
  readonly memoryMib: number;
  /** How it boots: a kernel that is given to it, or what its own disk begins with. */
  readonly boot: { readonly kernel: string; readonly initrd: string } | 'firmware';
  readonly disk: string;
  readonly seed: string;
  readonly volumes: readonly Volume[];
  readonly tap: string;
  readonly mac: string;
}

/** Names inside an instance's directory, which is QEMU's working directory: a socket's path may be 107 bytes at most. */
export const MACHINE_FILES = {
  disk: 'disk.qcow2',
  seed: 'seed.iso',
  qmp: 'qmp.sock',
  pid: 'qemu.pid',
  log: 'qemu.log',
} as const;
