import { join } from 'node:path';
import { type NodeProcess, startNode } from '../../../services/core/src/testing/node.ts';

const FIRST_PORT = 4_124;

/** Core processes of one node on one machine, which are started again after they were killed. */
export class Cores implements AsyncDisposable {
  readonly #home: string;
  readonly #databaseUrl: string | undefined;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #processes: NodeProcess[] = [];
  readonly #firstPort: number;

  /** @param databaseUrl the embedded one where left out */
  constructor(
    directory: string,
    databaseUrl: string | undefined,
    settings: Readonly<Record<string, string>>,
    firstPort = FIRST_PORT,
  ) {
    this.#home = join(directory, `home-${firstPort}`);
    this.#databaseUrl = databaseUrl;
    this.#firstPort = firstPort;
    this.#settings = {
      SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
      SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
      SKERRY_CORE_WEBHOOK_TIMEOUT_MS: '10000',
      SKERRY_LOG_LEVEL: 'error',
      ...settings,
    };
  }

  urlOf = (index: number): string => `http://127.0.0.1:${this.#firstPort + index}`;

  pidOf = (index: number): number => this.#processes[index]!.child.pid!;

  /** Starts one; one that could not start, as while the database is away, is started again, as a supervisor does. */
  async start(index: number): Promise<void> {
    const port = String(this.#firstPort + index);
    for (let attempt = 1; ; attempt++) {
      try {
        this.#processes[index] = await startNode(this.#home, this.#databaseUrl, {
          ...this.#settings,
          SKERRY_CORE_PORT: port,
        });
        return;
      } catch (error) {
        if (attempt === 5) throw error;
      }
    }
  }

  kill = (index: number): Promise<void> => this.#processes[index]!.end('SIGKILL');

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#processes) await one.end('SIGKILL');
  }
}
