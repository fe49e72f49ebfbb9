import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { InstanceView } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { READY_PORT } from '../images/guest-files.ts';
import { IMAGE_FILES } from '../images/image.ts';
import type { NewInstance } from './real-core.ts';
import { PREFIX, type VmWorld } from './vm-world.ts';

/** Where a tiny guest listens with a shell: one connection, one script. */
export const SHELL_PORT = 7;
/** Where its disk keeps a line for every press of its power button. */
export const POWER_BUTTON_MARK = '/power-button';
/** What it says on port 22, as a server for ssh does at once. */
export const GREETING = 'SSH-2.0-tiny';
const CPIO_HEAD = 110;
const FILE_SYSTEM_MIB = 768;
/** Only what hangs takes as long. */
const LIMIT_MS = 300_000;

/**
 * The whole of the guest: addresses from the seed, a greeting, a shell for whoever connects, the port that says that it is
 * up, and a power button. It boots in a tenth of the time of a distribution, by the same kernel and on a disk of the same kind.
 */
const initOf = (ports: readonly string[]) => `#!/bin/sh
export PATH=/bin
mount -t iso9660 -o ro /dev/vdb /seed
config=$(cat /seed/network-config)
part() { echo "$config" | sed -n "s/.*$1.*/\\\\1/p"; }
echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad
echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set lo up
ip link set eth0 up
ip -6 addr add "$(part '"addresses":\\["\\([^"]*\\)"')" dev eth0
ip addr add "$(part '"addresses":\\["[^"]*","\\([^"]*\\)"')" dev eth0
ip -6 route add default via "$(part '"gateway6":"\\([^"]*\\)"')" dev eth0
ip route add default via "$(part '"gateway4":"\\([^"]*\\)"')"
nc -ll -p 22 -e /bin/greet &
nc -ll -p ${SHELL_PORT} -e /bin/serve &
${ports.map((port) => `nc -ll -p ${port} -e /bin/answer-${port} &\n`).join('')}for event in /dev/input/event*; do
  (dd if=$event of=/dev/null bs=24 count=1 2>/dev/null; echo pressed >> ${POWER_BUTTON_MARK}; sync; mount -o remount,ro /; poweroff -f) &
done
for port in /sys/class/virtio-ports/*; do
  [ "$(cat $port/name)" = ${READY_PORT} ] && exec 3<>/dev/\${port##*/}
done
echo "the tiny guest is up" > /dev/console
while :; do wait; sleep 3600; done
`;

/** busybox, out of the initial RAM disk of an image: the archive is of our own making (see images/cpio.ts). */
async function readBusybox(initrd: string): Promise<Uint8Array> {
  const archive = gunzipSync(await readFile(initrd));
  const up = (offset: number) => Math.ceil(offset / 4) * 4;
  for (let at = 0; at + CPIO_HEAD < archive.length; ) {
    const field = (index: number) =>
      Number.parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16);
    const nameEnd = at + CPIO_HEAD + field(11);
    const start = up(nameEnd);
    if (archive.toString('latin1', at + CPIO_HEAD, nameEnd - 1) === 'bin/busybox')
      return archive.subarray(start, start + field(6));
    at = up(start + field(6));
  }
  throw new Error(`${initrd} holds no busybox`);
}

export interface TinyDisk {
  /** Makes one disk another file than the next. */
  readonly label?: string;
  /** Makes it larger. */
  readonly ballast?: Uint8Array | undefined;
  /** Ports on which it listens beside its own, each with the lines for sh that serve a connection. */
  readonly answers?: Readonly<Record<number, string>>;
}

/** Makes the disk of a tiny guest: a qcow2 of some three megabytes with one file system. */
export async function makeTinyDisk(
  initrd: string,
  { label = 'tiny', ballast, answers = {} }: TinyDisk = {},
): Promise<Uint8Array> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-tiny-'));
  try {
    const root = join(directory, 'root');
    for (const name of ['bin', 'dev', 'proc', 'sys', 'seed', 'root', 'sbin', 'tmp'])
      await mkdir(join(root, name), { recursive: true });
    const busybox = join(root, 'bin/busybox');
    await writeFile(busybox, await readBusybox(initrd), { mode: 0o755 });
    for (const name of (await run(busybox, ['--list'])).trim().split('\n'))
      if (name !== 'busybox') await symlink('busybox', join(root, 'bin', name));
    const scripts = {
      ...Object.fromEntries(
        Object.entries(answers).map(([port, lines]) => [
          `bin/answer-${port}`,
          `#!/bin/sh\nexport PATH=/bin\n${lines}\n`,
        ]),
      ),
      'sbin/init': initOf(Object.keys(answers)),
      'bin/greet': `#!/bin/sh\necho ${GREETING}\nexec cat >/dev/null\n`,
      'bin/serve': '#!/bin/sh\nexport PATH=/bin\nexec sh 2>&1\n',
    };
    for (const [name, text] of Object.entries(scripts))
      await writeFile(join(root, name), text, { mode: 0o755 });
    if (ballast) await writeFile(join(root, 'ballast'), ballast);
    const raw = join(directory, 'disk.raw');
    const whole = 'lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0';
    await run('mke2fs', [
      '-q',
      '-t',
      'ext4',
      '-L',
      label,
      '-J',
      'size=4',
      '-E',
      whole,
      '-d',
      root,
      raw,
      `${FILE_SYSTEM_MIB}M`,
    ]);
    const disk = join(directory, 'disk.qcow2');
    await run('qemu-img', ['convert', '-O', 'qcow2', raw, disk]);
    return await readFile(disk);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Stores the disk of a tiny guest on the network, as an image. Gives its hash. */
export async function storeTiny(world: VmWorld, label = 'tiny', ballast?: Uint8Array): Promise<string> {
  const { directory } = await world.images.ensure('debian:12', () => {});
  const disk = await makeTinyDisk(join(directory, IMAGE_FILES.initrd), { label, ballast });
  const file = createHash('sha256').update(disk).digest('hex');
  await world.core.client.storeFile(new Blob([disk as BlobPart]), 'disk.qcow2', file);
  return file;
}

export function createTiny(
  world: VmWorld,
  name: string,
  image: string,
  node: NewInstance['node'],
  onCreated: () => void = () => {},
): Promise<InstanceView> {
  const allowedPorts = [22, SHELL_PORT];
  const size = { memory: 128, disk: 1 };
  return world.core.create({
    name,
    image,
    sshKey: world.sshKey,
    allowedPorts,
    ...size,
    node,
    ipv6Prefix: PREFIX,
    onCreated,
  });
}

/** Runs a script in a tiny guest, and gives what it wrote. Rejects when nobody answers in time. */
export function askTiny(
  address: string,
  script: string,
  limitMs = LIMIT_MS,
  port = SHELL_PORT,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: address, port, signal: AbortSignal.timeout(limitMs) });
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  socket.once('error', reject).once('end', () => resolve(text.trim()));
  socket.write(`${script}\nexit\n`);
  return promise.finally(() => socket.destroy());
}
