import { join } from 'node:path';
import { type NodeProcess, startNode } from '../../services/core/src/testing/node.ts';

const SETTINGS = { SKERRY_CORE_RATE_LIMITS: 'no', SKERRY_CORE_GOSSIP: 'no' };

/** Processes of one core node on one database, which end together. */
export class Processes implements AsyncDisposable {
  readonly #home: string;
  readonly #databaseUrl: string;
  readonly #started: NodeProcess[] = [];

  constructor(directory: string, databaseUrl: string) {
    this.#home = join(directory, 'home');
    this.#databaseUrl = databaseUrl;
  }

  /** Starts one more, with these roles, and gives where it answers. */
  async start(roles: string): Promise<string> {
    const settings = { ...SETTINGS, SKERRY_CORE_ROLES: roles };
    const started = await startNode(this.#home, this.#databaseUrl, settings);
    this.#started.push(started);
    return started.url;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#started) await one.end('SIGTERM');
  }
}
