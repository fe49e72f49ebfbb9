import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { createWallet } from '@skerry/client';
import { messageArchive } from '@skerry/contracts';
import { backoffMs, loadOrCreateKeyFile, makeDirectory, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { keepDumping } from './dumps.ts';
import { mendState } from './state.ts';

/** A chain of one's own for confirmations: anvil, with blocks made whenever there is a transaction. */
export interface DevnetChain extends AsyncDisposable {
  readonly url: string;
  readonly contract: string;
  /** Settings of the core node that packs, and of those that only follow. */
  readonly packingFile: string;
  readonly followingFile: string;
}

const CHAIN_ID = 31337;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const START_MS = 15_000;
const STOP_MS = 5_000;
/** By itself, anvil writes its state when it ends: what it writes meanwhile is all of it, however little is new. */
const NO_DUMP_SECONDS = 1_000_000_000;
/** States of accounts as of earlier blocks, which nobody asks for. Without a limit it keeps 500 in memory, and thousands as files. */
const KEPT_STATES = 16;
/** It is started again for ever, later each time; one that ran for long begins anew. */
const RESTART_MS = { base: 200, max: 30_000 };
const STEADY_MS = 30_000;
const RECEIPT_LOOKS = 200;
const RECEIPT_LOOK_MS = 50;
const GAS = 3_000_000n;
const GWEI = 1_000_000_000n;
const FUNDS = `0x${(10n ** 21n).toString(16)}`;

/** The chain's program, or undefined where it is not installed: it is one of the packages for development. */
function findProgram(): string | undefined {
  const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch]}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'anvil');
  } catch {
    return undefined;
  }
}

async function call<T>(url: string, method: string, ...params: unknown[]): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(START_MS),
  });
  const { result, error } = (await response.json()) as { result?: T; error?: { message: string } };
  if (error) throw new AppError('UPSTREAM_UNAVAILABLE', `the chain refused ${method}: ${error.message}`);
  return result as T;
}

/** What anvil leaves there when it is killed is of no use to the next. */
const cacheOf = (stateFile: string) => join(dirname(stateFile), 'cache');

/** Resolves with its address when it listens. It goes when this process does, also by SIGKILL. */
async function spawnChain(program: string, stateFile: string, port: number) {
  const args = [
    ...['--port', String(port), '--chain-id', String(CHAIN_ID), '--prune-history', String(KEPT_STATES)],
    ...['--state', stateFile, '--state-interval', String(NO_DUMP_SECONDS)],
    // In the home directory otherwise, where nobody looks for what a network left.
    ...['--cache-path', cacheOf(stateFile)],
  ];
  await rm(cacheOf(stateFile), { recursive: true, force: true });
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  const failed = once(child, 'exit').then(() => undefined);
  child.on('error', () => {});
  const listening = (async () => {
    for await (const line of createInterface({ input: child.stdout! })) {
      const address = /Listening on (\S+)/.exec(line)?.[1];
      if (address) return `http://${address}`;
    }
    return undefined;
  })();
  const url = await Promise.race([listening, failed.catch(() => undefined)]);
  if (url === undefined) throw new AppError('DAEMON_FAILED', 'the chain did not start');
  child.stdout!.resume();
  return { child, url };
}

/** The chain makes a block for each transaction, but not before it has answered. */
async function findReceipt(url: string, hash: string): Promise<{ contractAddress: string }> {
  for (let look = 0; look < RECEIPT_LOOKS; look++) {
    const receipt = await call<{ contractAddress: string } | null>(url, 'eth_getTransactionReceipt', hash);
    if (receipt) return receipt;
    await wait(RECEIPT_LOOK_MS);
  }
  throw new AppError('UPSTREAM_UNAVAILABLE', `the chain did not include ${hash} in a block`);
}

/** The contract of an earlier start where the chain still has it, or a new one. */
async function ensureContract(url: string, key: string, file: string): Promise<string> {
  const known = await readFile(file, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  );
  if (known !== undefined && (await call<string>(url, 'eth_getCode', known, 'latest')) !== '0x') return known;
  const wallet = createWallet(key);
  const nonce = Number(await call<string>(url, 'eth_getTransactionCount', wallet.address, 'latest'));
  const { raw, hash } = wallet.sign({
    chainId: CHAIN_ID,
    nonce,
    maxFeePerGas: 100n * GWEI,
    maxPriorityFeePerGas: GWEI,
    gas: GAS,
    to: null,
    value: 0n,
    data: messageArchive.bytecode,
  });
  await call(url, 'eth_sendRawTransaction', raw);
  const receipt = await findReceipt(url, hash);
  await writeFile(file, `${receipt.contractAddress}\n`);
  return receipt.contractAddress;
}

/** The key has funds and the contract is there, whatever became of the chain's state. Gives their addresses. */
async function fundAndDeploy(url: string, keyFile: string, contractFile: string) {
  const key = await loadOrCreateKeyFile(keyFile);
  const emitter = createWallet(key).address;
  await call(url, 'anvil_setBalance', emitter, FUNDS);
  return { emitter, contract: await ensureContract(url, key, contractFile) };
}

async function writeSettings(
  directory: string,
  { url, contract, emitter, keyFile }: { url: string; contract: string; emitter: string; keyFile: string },
) {
  const network = {
    name: 'devnet',
    chain_id: CHAIN_ID,
    endpoints: [url],
    // Without it an idle network would ask for blocks all the time.
    subscriptions: [url.replace(/^http/, 'ws')],
    poll_ms: 500,
    finality: 'depth',
    on_restart: 'reset',
  };
  const anchor = { network, chain: 'ETH', contract, emitters: [emitter] };
  const packing = { key_file: keyFile, interval_seconds: 2, resend_seconds: 10 };
  const write = async (name: string, value: object) => {
    const path = join(directory, name);
    await writeFile(path, `${JSON.stringify({ anchors: [value] }, null, 2)}\n`, { mode: 0o600 });
    return path;
  };
  return {
    packingFile: await write('anchors-packing.json', { ...anchor, packing }),
    followingFile: await write('anchors-following.json', anchor),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // It writes its state before it ends.
  child.kill('SIGTERM');
  const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(deadline);
}

/** Tells of an end once, however many starts fail, and of the start that does not. */
function tellOnce(tell: (line: string) => void) {
  let isDown = false;
  return {
    ended() {
      if (!isDown) tell('the chain ended; starting it again');
      isDown = true;
    },
    runs() {
      isDown = false;
      tell('the chain runs again');
    },
  };
}

/**
 * Starts the chain with what it had before, the contract on it, and a funded key; it is started again where it ends.
 *
 * @param directory for its state and the settings of core nodes
 * @param tell of what was lost of an earlier start, and of an end and the start after it
 * @returns undefined where anvil is not installed
 * @throws AppError DAEMON_FAILED, UPSTREAM_UNAVAILABLE
 */
export async function startChain(
  directory: string,
  tell: (line: string) => void = () => {},
): Promise<DevnetChain | undefined> {
  const program = findProgram();
  if (program === undefined) return undefined;
  await makeDirectory(directory);
  const stateFile = join(directory, 'state.json');
  const start = async (port: number) => {
    await mendState(stateFile, tell);
    return spawnChain(program, stateFile, port);
  };
  let running = await start(0);
  const { url } = running;
  const stopping = new AbortController();
  const keyFile = join(directory, 'archive.key');
  const prepare = () => fundAndDeploy(url, keyFile, join(directory, 'contract'));
  const news = tellOnce(tell);
  const keepRunning = async (): Promise<void> => {
    for (let failures = 1, sinceMs = Date.now(); ; failures++) {
      const { child } = running;
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      if (Date.now() - sinceMs >= STEADY_MS) failures = 1;
      if (!stopping.signal.aborted) news.ended();
      if (!(await pause(backoffMs(failures, RESTART_MS.base, RESTART_MS.max), stopping.signal))) return;
      sinceMs = Date.now();
      // One that does not come up has ended, and is tried again later.
      const again = await start(Number(new URL(url).port)).catch(() => undefined);
      if (again === undefined) continue;
      running = again;
      // A state that it had not written yet, or that a kill tore, is gone. The contract comes back where it was: a key's first one.
      // Without it, the chain is no use: it is ended, and started once more.
      if (!stopping.signal.aborted) await prepare().then(news.runs, () => end(again.child));
      if (stopping.signal.aborted) return;
    }
  };
  const kept = keepRunning();
  const dumped = keepDumping((method) => call(url, method), stateFile, stopping.signal);
  const stop = async () => {
    stopping.abort();
    // Both write the state.
    await dumped;
    await end(running.child);
    await kept;
    await end(running.child);
  };
  try {
    const { emitter, contract } = await prepare();
    const files = await writeSettings(directory, { url, contract, emitter, keyFile });
    return {
      url,
      contract,
      ...files,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
