import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../../services/compute/src/host/run.ts';
import { IMAGE_FILES, type Image } from '../../../services/compute/src/images/image.ts';
import { writeSeed } from '../../../services/compute/src/vm/seed.ts';
import { HERE, type Link } from './places.ts';

/** Where a server finds the folder of packages. */
export const FOLDER = '/srv/packages';
const DISK_GIB = 14;
/** Only what hangs takes as long: a server is emulated, on a machine that others use too. */
const BOOT_MS = 900_000;
const COMMAND_MS = 2_400_000;
const SHUT_DOWN_MS = 600_000;
const CONSOLE_TAIL_CHARS = 1_500;

export interface ServerPlan {
  readonly name: string;
  readonly link: Link;
  readonly memoryMib: number;
  readonly image: Image;
  /** A file system with the packages, read-only. */
  readonly folder: string;
  /** Its own, for disk and seed. */
  readonly directory: string;
  /** Without `.pub`. */
  readonly sshKey: string;
}

/**
 * What the guests' image leaves out and every server has: modules that are loaded when they are asked for. And packages come from
 * the folder, since nothing here leads to the internet.
 */
const FURNISH = [
  'rm -f /etc/systemd/system/kmod-static-nodes.service /etc/systemd/system/systemd-modules-load.service',
  'systemctl daemon-reload',
  'modprobe tun',
  `echo 'deb [trusted=yes] file:${FOLDER}/debian ./' > /etc/apt/sources.list`,
  'rm -f /etc/apt/sources.list.d/*',
].join(' && ');

/** A Debian server with systemd: a virtual machine of this machine, emulated in software. */
export class Server implements AsyncDisposable {
  readonly #plan: ServerPlan;
  #qemu: ChildProcess | undefined;
  #ended = '';

  constructor(plan: ServerPlan) {
    this.#plan = plan;
  }

  get #disk(): string {
    return join(this.#plan.directory, 'disk.qcow2');
  }

  get #console(): string {
    return join(this.#plan.directory, 'console.log');
  }

  /** Power on, with an empty Debian on its disk the first time. Resolves when one can log in. */
  async boot(): Promise<void> {
    const { directory, image, sshKey, name, link } = this.#plan;
    await mkdir(directory, { recursive: true });
    const base = join(image.directory, IMAGE_FILES.disk);
    await run('qemu-img', [
      'create',
      '-q',
      '-f',
      'qcow2',
      '-F',
      'qcow2',
      '-b',
      base,
      this.#disk,
      `${DISK_GIB}G`,
    ]);
    const { mac, ipv4, ipv6 } = link;
    await writeSeed(
      {
        ...{ instanceId: name, hostname: name, mac, ipv4, nameServers: [HERE] },
        sshKeys: [(await readFile(`${sshKey}.pub`, 'utf8')).trim()],
        address: `${ipv6.guest}/64`,
        volumes: [{ isReadOnly: true, mount: FOLDER }],
      },
      join(directory, 'seed.iso'),
    );
    await this.powerOn();
    await this.run(FURNISH);
  }

  /** Power on, with the disk as it is. Resolves when one can log in. */
  async powerOn(): Promise<void> {
    this.#start();
    await this.run('true', BOOT_MS);
  }

  /** It is told to shut down, and does. */
  async shutDown(): Promise<void> {
    const ended = once(this.#qemu!, 'exit', { signal: AbortSignal.timeout(SHUT_DOWN_MS) });
    // It ends the connection that told it.
    await this.run('systemctl poweroff').catch(() => {});
    await ended.catch((error: Error) => this.#fail('shut down', error));
    await this.#ssh('ssh', ['-O', 'exit', `root@${this.#plan.link.ipv4.guest}`], COMMAND_MS).catch(() => {});
  }

  /** Rejects, with the end of what its console said. */
  async #fail(what: string, cause: Error): Promise<never> {
    const console = (await readFile(this.#console, 'utf8').catch(() => '')).slice(-CONSOLE_TAIL_CHARS);
    const { name } = this.#plan;
    throw new Error(`${name}: ${what}: ${cause.message}. ${this.#ended}\nIts console:\n${console}`, {
      cause,
    });
  }

  #start(): void {
    const { directory, image, memoryMib, link, folder } = this.#plan;
    const drive = (file: string, format: string, more = '') =>
      ['-drive', `if=virtio,file=${file},format=${format}${more}`] as const;
    const args = [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-machine', 'q35,usb=off,vmport=off'],
      ...['-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'max', '-smp', '2', '-m', `${memoryMib}M`],
      ...['-kernel', join(image.directory, IMAGE_FILES.kernel)],
      ...['-initrd', join(image.directory, IMAGE_FILES.initrd)],
      ...['-append', 'console=ttyS0 quiet systemd.show_status=yes net.ifnames=0 panic=1'],
      ...['-serial', `file:${this.#console}`],
      ...['-device', 'virtio-rng-pci'],
      ...['-netdev', `tap,id=net0,ifname=${link.tap},script=no,downscript=no`],
      ...['-device', `virtio-net-pci,netdev=net0,mac=${link.mac},romfile=`],
      ...drive(this.#disk, 'qcow2', ',cache=unsafe'),
      ...drive(join(directory, 'seed.iso'), 'raw', ',readonly=on'),
      ...drive(folder, 'raw', ',readonly=on'),
    ];
    const child = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('exit', (code, signal) => {
      this.#ended = `its QEMU ended with ${code ?? signal}`;
    });
    this.#qemu = child;
  }

  #ssh(program: string, rest: readonly string[], limitMs: number): Promise<string> {
    const { sshKey, directory } = this.#plan;
    const options = [
      ...['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'],
      // A handshake costs seconds when it is emulated: later commands share the first connection.
      ...['ControlMaster=auto', `ControlPath=${join(directory, 'ssh-%r')}`, 'ControlPersist=yes'],
      ...['ConnectionAttempts=900', 'ConnectTimeout=300', 'ServerAliveInterval=60'],
    ].flatMap((one) => ['-o', one]);
    return run(program, ['-i', sshKey, ...options, ...rest], { timeoutMs: limitMs });
  }

  /** Runs a line of shell, and gives what it printed. Rejects when it fails, with the end of what it said. */
  async run(line: string, limitMs = COMMAND_MS, user = 'root'): Promise<string> {
    try {
      return (await this.#ssh('ssh', [`${user}@${this.#plan.link.ipv4.guest}`, line], limitMs)).trim();
    } catch (error) {
      return this.#fail(line, error as Error);
    }
  }

  /** Copies a file from the server. */
  async fetch(from: string, to: string): Promise<void> {
    await this.#ssh('scp', [`root@${this.#plan.link.ipv4.guest}:${from}`, to], COMMAND_MS);
  }

  /** Copies a file to the server. */
  async put(from: string, to: string): Promise<void> {
    await this.#ssh('scp', [from, `root@${this.#plan.link.ipv4.guest}:${to}`], COMMAND_MS);
  }

  /** The power is cut, and the disk is gone. */
  async lose(): Promise<void> {
    await this[Symbol.asyncDispose]();
    await rm(this.#plan.directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#qemu;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}
