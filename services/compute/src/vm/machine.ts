/** How guests run on this machine. */
export type Accelerator = 'kvm' | 'tcg';

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
