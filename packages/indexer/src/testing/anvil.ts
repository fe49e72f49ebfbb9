import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { EMITTER_CODE, emitterInput } from './contracts.ts';

const SENDER = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** The program of the package for this machine: the package's own launcher is not needed. */
function findProgram(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch]}`;
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'anvil');
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A real EVM node of one process, with blocks made on request. */
export class Anvil implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  #lastId = 0;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** @param args beside those that make blocks come on request only */
  static async start(args: readonly string[] = []): Promise<Anvil> {
    const child = spawn(
      findProgram(),
      [
        '--port',
        '0',
        '--no-mining',
        '--order',
        'fifo',
        ...(args.includes('--slots-in-an-epoch') ? [] : ['--slots-in-an-epoch', '8']),
        '--gas-limit',
        '3000000000',
        ...args,
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    running.add(child);
    for await (const line of createInterface({ input: child.stdout! })) {
      const address = /Listening on (\S+)/.exec(line)?.[1];
      if (!address) continue;
      child.stdout!.resume();
      child.unref();
      (child.stdout as unknown as { unref(): void }).unref();
      return new Anvil(`http://${address}`, child);
    }
    throw new Error('anvil ended before it listened');
  }

  async call<T = unknown>(method: string, ...params: unknown[]): Promise<T> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++this.#lastId, method, params }),
    });
    const { result, error } = (await response.json()) as { result?: T; error?: { message: string } };
    if (error) throw new Error(`${method}: ${error.message}`);
    return result as T;
  }

  /** The same question about many things, in one request. */
  async callAll<T = unknown>(method: string, all: readonly (readonly unknown[])[]): Promise<T[]> {
    const first = this.#lastId + 1;
    this.#lastId += all.length;
    const response = await fetch(this.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(
        all.map((params, index) => ({ jsonrpc: '2.0', id: first + index, method, params })),
      ),
    });
    const answers = (await response.json()) as { id: number; result?: T; error?: { message: string } }[];
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    return all.map((_, index) => {
      const { result, error } = byId.get(first + index)!;
      if (error) throw new Error(`${method}: ${error.message}`);
      return result as T;
    });
  }

  async head(): Promise<number> {
    return Number(await this.call<string>('eth_blockNumber'));
  }

  async mine(blocks = 1): Promise<void> {
    await this.call('anvil_mine', `0x${blocks.toString(16)}`);
  }

  async setCode(address: string, code: string = EMITTER_CODE): Promise<void> {
    await this.call('anvil_setCode', address, code);
  }

  /** Sends a transaction that the next block takes up. */
  async send(to: string, data: string, more: Record<string, unknown> = {}): Promise<string> {
    return this.call('eth_sendTransaction', { from: SENDER, to, data, gas: '0x1e8480', ...more });
  }

  emit(contract: string, topics: readonly string[], data: string): Promise<string> {
    return this.send(contract, emitterInput(topics, data));
  }

  /** Replaces the last blocks by others without their transactions. */
  async reorg(depth: number): Promise<void> {
    await this.call('anvil_reorg', depth, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.ref();
    this.#child.kill('SIGKILL');
    await exited;
    running.delete(this.#child);
  }
}
