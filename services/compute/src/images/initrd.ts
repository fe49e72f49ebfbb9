import type { Buffer } from 'node:buffer';
import { gzipSync } from 'node:zlib';
import { type CpioEntry, directory, encodeCpio, file } from './cpio.ts';

/** Kernel command line word that makes the initrd print `PROBE_MARKER` and power off instead of mounting a root. */
export const PROBE_WORD = 'skerry.probe';
/** What the initrd prints on the serial line when asked to prove that this machine runs a guest kernel. */
export const PROBE_MARKER = 'skerry-probe: alive';

/**
 * The modules of a Debian kernel that a guest needs to see its disk, seed, network and power button, relative to
 * `/lib/modules/VERSION`. What they need in turn is found in modules.dep.
 */
export const INITRD_MODULES: readonly string[] = [
  'kernel/drivers/virtio/virtio_pci.ko',
  'kernel/drivers/block/virtio_blk.ko',
  'kernel/drivers/char/virtio_console.ko',
  'kernel/drivers/net/virtio_net.ko',
  'kernel/drivers/char/hw_random/virtio-rng.ko',
  'kernel/fs/isofs/isofs.ko',
  'kernel/drivers/acpi/button.ko',
  'kernel/drivers/input/evdev.ko',
];

const INIT = `#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sysfs /sys
$B mount -t devtmpfs devtmpfs /dev
read -r LINE < /proc/cmdline
case " $LINE " in *" ${PROBE_WORD} "*) echo '${PROBE_MARKER}' > /dev/ttyS0; $B poweroff -f;; esac
for m in /modules/*.ko; do $B insmod $m; done
n=0
while [ ! -b /dev/vda ] && [ $n -lt 1000 ]; do $B usleep 10000; n=$((n+1)); done
$B mount -t ext4 -o rw /dev/vda /newroot || { echo 'skerry: the root disk cannot be mounted' > /dev/ttyS0; $B poweroff -f; }
$B mount --move /dev /newroot/dev
$B mount --move /sys /newroot/sys
$B mount --move /proc /newroot/proc
exec $B switch_root /newroot /sbin/init
`;

/** The initial RAM disk: busybox, the modules in loading order, and an init that hands over to the root disk `/dev/vda`. */
export function encodeInitrd(
  busybox: Uint8Array,
  modules: readonly { name: string; data: Uint8Array }[],
): Buffer {
  const entries: CpioEntry[] = [
    ...['bin', 'dev', 'proc', 'sys', 'modules', 'newroot'].map(directory),
    file('bin/busybox', busybox, 0o755),
    file('init', new TextEncoder().encode(INIT), 0o755),
  ];
  modules.forEach((module, index) => {
    entries.push(file(`modules/${String(index).padStart(2, '0')}-${module.name}.ko`, module.data));
  });
  return gzipSync(encodeCpio(entries), { level: 9 });
}
