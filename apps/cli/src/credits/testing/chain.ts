import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { deployInput, transferInput } from './token.ts';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

function findAnvil(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch]}`;
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'anvil');
}

export const DECIMALS = 6;
const SUPPLY = 10n ** 15n;

/** A real chain of one process with a real token on it; blocks are made on request. */
export class TokenChain implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  #token = '';

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  static async start(): Promise<TokenChain> {
    const child = spawn(findAnvil(), ['--port', '0', '--no-mining', '--order', 'fifo'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    process.once('exit', () => child.kill('SIGKILL'));
    for await (const line of createInterface({ input: child.stdout! })) {
      const address = /Listening on (\S+)/.exec(line)?.[1];
      if (!address) continue;
      child.stdout!.resume();
      const chain = new TokenChain(`http://${address}`, child);
      await chain.#deploy();
      return chain;
    }
    throw new Error('anvil ended before it listened');
  }

  async #call<T>(method: string, ...params: unknown[]): Promise<T> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const { result, error } = (await response.json()) as { result?: T; error?: { message: string } };
    if (error) throw new Error(`${method}: ${error.message}`);
    return result as T;
  }

  async #deploy(): Promise<void> {
    const [from] = await this.accounts();
    const data = deployInput(DECIMALS, SUPPLY);
    const hash = await this.#call<string>('eth_sendTransaction', { from, data, gas: '0x1e8480' });
    await this.mine();
    const receipt = await this.#call<{ contractAddress: string }>('eth_getTransactionReceipt', hash);
    this.#token = receipt.contractAddress;
  }

  get token(): string {
    return this.#token;
  }

  /** The first one has all tokens. */
  accounts(): Promise<string[]> {
    return this.#call('eth_accounts');
  }

  /** The next block takes it up. @returns the transaction's hash */
  transfer(from: string, to: string, amount: bigint): Promise<string> {
    const data = transferInput(to, amount);
    return this.#call('eth_sendTransaction', { from, to: this.#token, data, gas: '0x1e8480' });
  }

  async mine(blocks = 1): Promise<void> {
    await this.#call('anvil_mine', `0x${blocks.toString(16)}`);
  }

  /** Replaces the last blocks by others without their transactions. */
  async reorg(depth: number): Promise<void> {
    await this.#call('anvil_reorg', depth, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
