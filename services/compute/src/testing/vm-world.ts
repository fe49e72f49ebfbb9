import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OwnerPass } from '@skerry/client';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { type InstanceView, sha256Hex } from '@skerry/protocol';
import { clearLeftGroups } from '../groups/left-groups.ts';
import { run } from '../host/run.ts';
import type { ImageStore } from '../images/store.ts';
import { openCache } from './play.ts';
import { type AnnouncedNode, RealCore } from './real-core.ts';
import { until } from './wait.ts';

/** Only what hangs takes as long as these. */
export const READY_MS = 900_000;
export const STOP_MS = 600_000;
export const SOON_MS = 300_000;
export const SSH_MS = 600_000;
/** Connections, one a second. */
const SSH_ATTEMPTS = 300;
/** Long enough for an answer under load; a firewall that drops never answers. */
export const ANSWER_MS = 3_000;
/** The node's address towards the rest of IPv4 (RFC 5737, TEST-NET-2). */
export const NODE4 = '198.51.100.1';
export const PREFIX = 'fd5c:e771:0:1::/64';

export const isPhase = (phase: string) => (view: InstanceView) => view.phase === phase;

/** Ends QEMU processes that belong to a data directory, and to nobody else. */
export async function endMachines(dataDir: string): Promise<void> {
  const names = await run('sh', [
    '-c',
    `ls -d ${dataDir}/instances/*/qemu.pid ${dataDir}/released/*/qemu.pid 2>/dev/null; true`,
  ]);
  for (const name of names.trim().split('\n')) {
    const pid = Number(await readFile(name, 'utf8').catch(() => ''));
    const readLine = () => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const line = pid > 1 ? await readLine() : '';
    if (!line.includes('qemu-system') || !line.includes(dataDir)) continue;
    process.kill(pid, 'SIGKILL');
    // Its control group is its own until it is gone.
    await until('QEMU is gone', SOON_MS, async () => (await readLine()) === '');
  }
}

/** A command by ssh, without questions. */
export function sshWith(key: string, address: string, command: string, port = 22): Promise<string> {
  const options = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    // A machine that runs may still be starting its ssh server: one try a second.
    `ConnectionAttempts=${SSH_ATTEMPTS}`,
    'ConnectTimeout=300',
  ].flatMap((one) => ['-o', one]);
  return run('ssh', ['-i', key, '-p', `${port}`, ...options, `root@${address}`, command], {
    timeoutMs: SSH_MS,
  });
}

export function step(text: string): void {
  console.log(`[${process.uptime().toFixed(1)} s] ${text}`);
}

export interface WorldOptions {
  /** Where the node's data directory is made; a temporary directory by default. */
  readonly dataRoot?: string;
  /** More settings of the node, by their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A core node and one compute node with real virtual machines, in the network namespace that this process runs in. */
export class VmWorld implements AsyncDisposable {
  readonly core: RealCore;
  readonly dataDir: string;
  readonly sshKey: string;
  readonly #directory: string;
  readonly #cacheDir: string;
  readonly #settings: Readonly<Record<string, string>>;
  #node: ChildProcess | undefined;

  private constructor(
    core: RealCore,
    directory: string,
    cacheDir: string,
    sshKey: string,
    { dataRoot = directory, settings = {} }: WorldOptions,
  ) {
    this.core = core;
    this.#settings = settings;
    this.#directory = directory;
    this.#cacheDir = cacheDir;
    this.dataDir = join(dataRoot, 'data');
    this.sshKey = sshKey;
  }

  /** @param cacheDir where the built image is */
  static async start(cacheDir: string, options: WorldOptions = {}): Promise<VmWorld> {
    const directory = await mkdtemp(join(tmpdir(), 'skerry-vm-'));
    const key = join(directory, 'id');
    await run('ip', ['link', 'set', 'lo', 'up']);
    await run('ip', ['link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'out1']);
    await run('ip', ['addr', 'add', `${NODE4}/24`, 'dev', 'out0']);
    for (const end of ['out0', 'out1']) await run('ip', ['link', 'set', end, 'up']);
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a "quoted" name', '-f', key]);
    const core = await new RealCore().start();
    const sshKey = (await readFile(`${key}.pub`, 'utf8')).trim();
    return new VmWorld(core, directory, cacheDir, sshKey, options);
  }

  async startNode(): Promise<void> {
    const environment = {
      ...process.env,
      SKERRY_COMPUTE_CORE_URL: this.core.url,
      SKERRY_COMPUTE_DATA_DIR: this.dataDir,
      SKERRY_COMPUTE_CACHE_DIR: this.#cacheDir,
      SKERRY_COMPUTE_IPV6_PREFIX: PREFIX,
      // By number: this network namespace may have nobody to ask for a name.
      SKERRY_COMPUTE_HOST: '127.0.0.1',
      SKERRY_COMPUTE_PORT: '0',
      SKERRY_COMPUTE_ANNOUNCE_IPV4: NODE4,
      ...this.#settings,
    };
    this.#node = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
      env: environment,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    await awaitReady(this.#node, 'the compute node');
  }

  async killNode(): Promise<void> {
    await endProcess(this.#node, 'SIGKILL');
    this.#node = undefined;
  }

  /** Resident memory of the node's own process, in MiB. */
  async nodeMemoryMib(): Promise<number> {
    const status = await readFile(`/proc/${this.#node!.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)![1]) / 1024;
  }

  /** What the node takes images from. */
  get images(): ImageStore {
    return openCache(this.#cacheDir);
  }

  /** The node as it announced itself. */
  async announced(): Promise<AnnouncedNode> {
    await until('the node is announced', SOON_MS, async () => (await this.core.listNodes()).length === 1);
    return (await this.core.listNodes())[0]!;
  }

  create(name: string, on: Pick<AnnouncedNode, 'nodeId' | 'address'>, image?: string): Promise<InstanceView> {
    return this.core.create({
      name,
      ...(image ? { image } : {}),
      sshKey: this.sshKey,
      allowedPorts: [22],
      node: on,
      ipv6Prefix: PREFIX,
    });
  }

  /** The port of the node that leads to a port of an instance. */
  async hostPort(id: string, port: number): Promise<number> {
    const [node] = await this.core.listNodes();
    const shown = (await (await fetch(`${node!.content.url}/v2/about/executions/list`)).json()) as Record<
      string,
      { networking: { mapped_ports: Record<string, { host: number }> } }
    >;
    return shown[id]!.networking.mapped_ports[port]!.host;
  }

  /** A request of the owner to the node; throws with what the node answers when it refuses. */
  async ask<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const [node] = await this.core.listNodes();
    const { url } = node!.content;
    const pass = await OwnerPass.create(this.core.owner, { domain: new URL(url).hostname });
    const isBytes = body instanceof Uint8Array;
    const sent = isBytes ? body : JSON.stringify(body);
    const bodySha256 = sent === undefined ? undefined : sha256Hex(sent);
    const headers = await pass.headers({ method, path, bodySha256 });
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...headers,
        ...(body === undefined
          ? {}
          : { 'content-type': isBytes ? 'application/octet-stream' : 'application/json' }),
      },
      ...(sent === undefined ? {} : { body: sent as BodyInit }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Makes a backup and gives its bytes, checked. */
  async backUp(id: string): Promise<Uint8Array> {
    interface Shown {
      backups: {
        backup_id: string;
        state: string;
        reason: unknown;
        checksum: string;
        download_url: string;
      }[];
    }
    const path = `/control/machine/${id}/backup`;
    const { backup_id: backupId } = await this.ask<{ backup_id: string }>('POST', path);
    const find = async () =>
      (await this.ask<Shown>('GET', path)).backups.find((one) => one.backup_id === backupId)!;
    await until('the backup is done', READY_MS, async () => (await find()).state !== 'running');
    const { state, reason, checksum, download_url: link } = await find();
    if (state !== 'done') throw new Error(`the backup failed: ${JSON.stringify(reason)}`);
    const [node] = await this.core.listNodes();
    const bytes = new Uint8Array(await (await fetch(`${node!.content.url}${link}`)).arrayBuffer());
    const digest = createHash('sha256').update(bytes).digest('hex');
    if (checksum !== `sha256:${digest}`) throw new Error('the backup is not what its checksum says');
    return bytes;
  }

  ssh(address: string, command: string, port = 22): Promise<string> {
    return sshWith(join(this.#directory, 'id'), address, command, port);
  }

  async qemuPid(id: string): Promise<number> {
    return Number(await readFile(join(this.dataDir, 'instances', id, 'qemu.pid'), 'utf8'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.#node, 'SIGTERM');
    await endMachines(this.dataDir);
    await clearLeftGroups(this.dataDir);
    await this.core[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Runs a scenario in a world of its own, made from this process's first argument, and says by the exit code how it ended. */
export async function playInWorld(
  scenario: (world: VmWorld) => Promise<void>,
  options: WorldOptions = {},
): Promise<void> {
  const [cacheDir = ''] = process.argv.slice(2);
  try {
    await using world = await VmWorld.start(cacheDir, options);
    await scenario(world);
    step('done');
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  }
}
