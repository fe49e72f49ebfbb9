import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { clearLeftGroups } from '../groups/left-groups.ts';
import { run } from '../host/run.ts';
import { Machine } from './namespaces.ts';
import { endMachines } from './vm-world.ts';

export interface HostPlan {
  /** From 1; addresses follow from it. */
  readonly number: number;
  readonly coreUrl: string;
  readonly dataDir: string;
  readonly cacheDir: string;
}

/** The address of this process's namespace on the network that all hosts are on. */
export const WORLD4 = '198.51.100.254';

/** One host with a compute node: a network namespace of its own on the same wire. It can lose its power. */
export class ComputeHost {
  readonly #plan: HostPlan;
  #machine: Machine | undefined;
  #node: ChildProcess | undefined;

  constructor(plan: HostPlan) {
    this.#plan = plan;
  }

  get ipv4(): string {
    return `198.51.100.${this.#plan.number}`;
  }

  get prefix(): string {
    return `2001:db8:5:${this.#plan.number}::/64`;
  }

  /** Power on: a new namespace with a wire to the world, where nothing of before is left but the disks. */
  async boot(): Promise<void> {
    const { number } = this.#plan;
    const machine = await Machine.start();
    this.#machine = machine;
    const wire = `host${number}`;
    await run('ip', ['link', 'add', wire, 'type', 'veth', 'peer', 'name', 'up0', 'netns', `${machine.pid}`]);
    await run('ip', ['link', 'set', wire, 'master', 'wire', 'up']);
    await machine.ip(
      'link set up0 up',
      `addr add ${this.ipv4}/24 dev up0`,
      `route add default via ${WORLD4}`,
      `-6 addr add 2001:db8:5:ff::${number}/64 dev up0 nodad`,
      '-6 route add default via 2001:db8:5:ff::fe',
    );
    await run('ip', ['-6', 'route', 'replace', this.prefix, 'via', `2001:db8:5:ff::${number}`]);
    await this.startNode();
  }

  async startNode(): Promise<void> {
    const { coreUrl, dataDir, cacheDir } = this.#plan;
    const main = join(import.meta.dirname, 'main.ts');
    this.#node = spawn(
      'nsenter',
      [`--net=/proc/${this.#machine!.pid}/ns/net`, '--', process.execPath, main],
      {
        env: {
          ...process.env,
          SKERRY_COMPUTE_CORE_URL: coreUrl,
          SKERRY_COMPUTE_DATA_DIR: dataDir,
          SKERRY_COMPUTE_CACHE_DIR: cacheDir,
          SKERRY_COMPUTE_IPV6_PREFIX: this.prefix,
          SKERRY_COMPUTE_HOST: this.ipv4,
          SKERRY_COMPUTE_PORT: '4020',
        },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      },
    );
    await awaitReady(this.#node, `the compute node of host ${this.#plan.number}`);
  }

  async killNode(): Promise<void> {
    await endProcess(this.#node, 'SIGKILL');
    this.#node = undefined;
  }

  /** Power off, as pulled out of the wall. */
  async lose(): Promise<void> {
    await this.killNode();
    await endMachines(this.#plan.dataDir);
    await clearLeftGroups(this.#plan.dataDir);
    // The kernel takes a namespace away in its own time: its wire's name must be free before.
    if (this.#machine) await run('ip', ['link', 'delete', `host${this.#plan.number}`]);
    await this.#machine?.[Symbol.asyncDispose]();
    this.#machine = undefined;
  }
}
