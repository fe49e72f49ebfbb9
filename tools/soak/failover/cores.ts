import { copyFileSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { type NodeProcess, startNode } from '../../../services/core/src/testing/node.ts';
import { logOf } from './logs.ts';

/** What processes on several machines have in common (docs/roles.md). */
const KEYS = ['node.key', 'sealing.key', 'vrf-keys.json'];
/** As a supervisor would try. */
const STARTS_MAX = 5;

/** A `skerry core` of the node. */
export interface CoreProcess {
  readonly name: string;
  /** The embedded one where left out. */
  readonly databaseUrl?: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Core processes of one node, each with a data directory of its own, which are started again after they were killed. */
export class Cores implements AsyncDisposable {
  readonly #directory: string;
  readonly #firstPort: number;
  readonly #all: readonly CoreProcess[];
  readonly #running: NodeProcess[] = [];

  constructor(directory: string, firstPort: number, all: readonly CoreProcess[]) {
    this.#directory = directory;
    this.#firstPort = firstPort;
    this.#all = all;
  }

  /** Starts the first one, which makes the keys, and then the others. */
  async open(): Promise<void> {
    const indexes = this.#all.map((_, index) => index);
    await this.start(0);
    for (const index of indexes.slice(1)) {
      mkdirSync(this.#dataDir(index), { recursive: true, mode: 0o700 });
      for (const key of KEYS) copyFileSync(join(this.#dataDir(0), key), join(this.#dataDir(index), key));
    }
    await Promise.all(indexes.slice(1).map((index) => this.start(index)));
  }

  nameOf = (index: number): string => this.#all[index]!.name;

  urlOf = (index: number): string => `http://127.0.0.1:${this.#firstPort + index}`;

  pidOf = (index: number): number => this.#running[index]!.child.pid!;

  /** Starts one; one that could not start, as while the database is away, is started again, as a supervisor does. */
  async start(index: number): Promise<void> {
    const { name, databaseUrl, settings } = this.#all[index]!;
    const log = openSync(logOf(this.#directory, name), 'a');
    const variables = {
      SKERRY_CORE_PORT: String(this.#firstPort + index),
      SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
      SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
      SKERRY_CORE_WEBHOOK_TIMEOUT_MS: '10000',
      SKERRY_LOG_LEVEL: 'info',
      ...settings,
    };
    for (let attempt = 1; ; attempt++) {
      try {
        this.#running[index] = await startNode(this.#home(index), databaseUrl, variables, {
          stdio: ['ignore', log, log, 'ipc'],
        });
        return;
      } catch (error) {
        if (attempt === STARTS_MAX) throw error;
      }
    }
  }

  kill = (index: number): Promise<void> => this.#running[index]!.end('SIGKILL');

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#running) await one?.end('SIGKILL');
  }

  #home = (index: number): string => join(this.#directory, this.nameOf(index));

  #dataDir = (index: number): string => join(this.#home(index), 'data/core');
}
