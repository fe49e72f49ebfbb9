import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstanceView } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { type AnnouncedNode, RealCore } from './real-core.ts';
import { until } from './wait.ts';

export const READY_MS = 300_000;
export const STOP_MS = 150_000;
export const SOON_MS = 20_000;
export const SSH_MS = 60_000;
/** Long enough for an answer under load; a firewall that drops never answers. */
export const ANSWER_MS = 3_000;
export const PREFIX = 'fd5c:e771:0:1::/64';

export const isPhase = (phase: string) => (view: InstanceView) => view.phase === phase;

export function step(text: string): void {
  console.log(`[${process.uptime().toFixed(1)} s] ${text}`);
}

/** A core node and one compute node with real virtual machines, in the network namespace that this process runs in. */
export class VmWorld implements AsyncDisposable {
  readonly core: RealCore;
  readonly dataDir: string;
  readonly sshKey: string;
  readonly #directory: string;
  readonly #cacheDir: string;
  #node: ChildProcess | undefined;

  private constructor(core: RealCore, directory: string, cacheDir: string, sshKey: string) {
    this.core = core;
    this.#directory = directory;
    this.#cacheDir = cacheDir;
    this.dataDir = join(directory, 'data');
    this.sshKey = sshKey;
  }

  /** @param cacheDir where the built image is */
  static async start(cacheDir: string): Promise<VmWorld> {
    const directory = await mkdtemp(join(tmpdir(), 'skerry-vm-'));
    const key = join(directory, 'id');
    await run('ip', ['link', 'set', 'lo', 'up']);
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a "quoted" name', '-f', key]);
    const core = await new RealCore().start();
    return new VmWorld(core, directory, cacheDir, (await readFile(`${key}.pub`, 'utf8')).trim());
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
    };
    this.#node = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
      env: environment,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    await once(this.#node, 'message');
  }

  async killNode(): Promise<void> {
    this.#node?.kill('SIGKILL');
    if (this.#node) await once(this.#node, 'exit');
    this.#node = undefined;
  }

  /** The node as it announced itself. */
  async announced(): Promise<AnnouncedNode> {
    await until('the node is announced', SOON_MS, async () => (await this.core.listNodes()).length === 1);
    return (await this.core.listNodes())[0]!;
  }

  create(name: string, on: Pick<AnnouncedNode, 'nodeId' | 'address'>): Promise<InstanceView> {
    return this.core.create({ name, sshKey: this.sshKey, allowedPorts: [22], node: on, ipv6Prefix: PREFIX });
  }

  ssh(address: string, command: string): Promise<string> {
    const options = [
      'StrictHostKeyChecking=no',
      'UserKnownHostsFile=/dev/null',
      'LogLevel=ERROR',
      'ConnectTimeout=30',
    ].flatMap((one) => ['-o', one]);
    const key = join(this.#directory, 'id');
    return run('ssh', ['-i', key, ...options, `root@${address}`, command], { timeoutMs: SSH_MS });
  }

  async qemuPid(id: string): Promise<number> {
    return Number(await readFile(join(this.dataDir, 'instances', id, 'qemu.pid'), 'utf8'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#node?.kill('SIGTERM');
    if (this.#node) await once(this.#node, 'exit');
    await this.#endMachines();
    await this.core[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #endMachines(): Promise<void> {
    const names = await run('sh', [
      '-c',
      `ls -d ${this.dataDir}/instances/*/qemu.pid ${this.dataDir}/released/*/qemu.pid 2>/dev/null; true`,
    ]);
    for (const name of names.trim().split('\n')) {
      const pid = Number(await readFile(name, 'utf8').catch(() => ''));
      const line = pid > 1 ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : '';
      if (line.includes('qemu-system') && line.includes(this.dataDir)) process.kill(pid, 'SIGKILL');
    }
  }
}

/** Runs a scenario in a world of its own, made from this process's first argument, and says by the exit code how it ended. */
export async function playInWorld(scenario: (world: VmWorld) => Promise<void>): Promise<void> {
  const [cacheDir = ''] = process.argv.slice(2);
  try {
    await using world = await VmWorld.start(cacheDir);
    await scenario(world);
    step('done');
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  }
}
