import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWallet } from '@skerry/client';
import { messageArchive } from '@skerry/contracts';
import { createWrite } from '@skerry/database';
import { NO_NETWORKS } from '@skerry/indexer';
import { Anvil } from '@skerry/indexer/testing';
import { createLogger, type Logger, listen } from '@skerry/kit';
import { createTestCore, signers, type TestCore, type TestCoreOptions } from '../../../testing/core.ts';
import { type Anchoring, startAnchoring } from '../anchoring.ts';
import { emitInput } from '../emitter.ts';
import { parseAnchorSettings } from '../settings.ts';

/** The first of the accounts that anvil funds; everybody knows its key. */
export const FUNDED_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
/** The second: its archives are not read. */
const STRANGER = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';

export interface ChainOptions {
  readonly endpoints?: readonly string[];
  readonly packs?: boolean;
  readonly horizonSeconds?: number;
  readonly maxFeeGwei?: number;
}

/** A chain with the contract on it. */
export class TestChain implements AsyncDisposable {
  readonly anvil: Anvil;
  readonly contract: string;
  #directory: string;

  private constructor(anvil: Anvil, contract: string, directory: string) {
    this.anvil = anvil;
    this.contract = contract;
    this.#directory = directory;
  }

  static async start(): Promise<TestChain> {
    const anvil = await Anvil.start();
    const { address } = createWallet(FUNDED_KEY);
    const gas = '0x2dc6c0';
    const hash = await anvil.call<string>('eth_sendTransaction', {
      from: address,
      data: messageArchive.bytecode,
      gas,
    });
    await anvil.mine();
    const receipt = await anvil.call<{ contractAddress: string }>('eth_getTransactionReceipt', hash);
    return new TestChain(anvil, receipt.contractAddress, await mkdtemp(join(tmpdir(), 'skerry-chain-')));
  }

  /** Has a text emitted; it is in the next block. */
  emit(content: string, from = createWallet(FUNDED_KEY).address): Promise<string> {
    const data = emitInput(content);
    return this.anvil.call('eth_sendTransaction', { from, to: this.contract, data, gas: '0x1c9c380' });
  }

  emitAsStranger(content: string): Promise<string> {
    return this.emit(content, STRANGER);
  }

  async settings(options: ChainOptions = {}) {
    const keyFile = join(this.#directory, 'key');
    await writeFile(keyFile, `${FUNDED_KEY}\n`, { mode: 0o600 });
    const packing = {
      key_file: keyFile,
      interval_seconds: 1,
      resend_seconds: 1,
      max_fee_gwei: options.maxFeeGwei ?? 150,
    };
    return parseAnchorSettings(
      {
        anchors: [
          {
            network: {
              name: 'anvil',
              chain_id: 31337,
              endpoints: options.endpoints ?? [this.anvil.url],
              poll_ms: 20,
              timeout_ms: 60_000,
              lie_rest_ms: 20,
              finality: 'depth',
              finality_depth: 1_000,
              reorg_depth_max: 2_000,
            },
            chain: 'ETH',
            contract: this.contract,
            emitters: [createWallet(FUNDED_KEY).address],
            archive_horizon_seconds: options.horizonSeconds ?? 3_600,
            poll_ms: 20,
            ...(options.packs ? { packing } : {}),
          },
        ],
      },
      NO_NETWORKS,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.anvil[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

export interface AnchoredCore extends AsyncDisposable {
  readonly core: TestCore;
  readonly url: string;
  readonly anchoring: Anchoring;
}

/** A core node that follows the chain, and packs where the settings say so. */
export async function createAnchoredCore(
  settings: Awaited<ReturnType<TestChain['settings']>>,
  options: TestCoreOptions = {},
  log: Logger = createLogger('core', 'fatal'),
): Promise<AnchoredCore> {
  await using stack = new AsyncDisposableStack();
  const core = stack.use(await createTestCore({ indexer: settings.indexer, log, ...options }));
  const { rooms } = core;
  const { pool } = rooms.indexer;
  const url = await listen(core.api, '127.0.0.1', 0);
  const anchoring = stack.use(
    await startAnchoring({
      ...rooms,
      pool,
      write: createWrite(pool),
      files: rooms.ipfs,
      anchors: settings.anchors,
      log,
    }),
  );
  const owned = stack.move();
  return { core, url, anchoring, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Sends posts as a client does. @returns their hashes */
export async function sendPosts(core: TestCore, count: number, channel = 'test'): Promise<string[]> {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      core.send(signers.alice, { type: 'POST', channel, content: { type: 'note', content: n } }),
    ),
  );
  return answers.map(({ body }) => {
    assert.equal(body.status, 'success', JSON.stringify(body));
    return body.item_hash as string;
  });
}

export interface Shown {
  readonly chain: string;
  readonly height: number;
  readonly hash: string;
}

export async function confirmationsOf(core: TestCore, hash: string): Promise<Shown[]> {
  return (await core.get(`/messages/${hash}`)).body.confirmations ?? [];
}

/** Whether each confirmation is of a transaction that the chain has at that height, and there is one for each message. */
export async function areRight(
  chain: TestChain,
  core: TestCore,
  hashes: readonly string[],
): Promise<boolean> {
  const seen = new Map<string, number | undefined>();
  for (const hash of hashes) {
    const confirmations = await confirmationsOf(core, hash);
    if (confirmations.length === 0) return false;
    for (const one of confirmations) {
      if (!seen.has(one.hash)) {
        const receipt = await chain.anvil.call<{ blockNumber: string } | null>(
          'eth_getTransactionReceipt',
          one.hash,
        );
        seen.set(one.hash, receipt ? Number(receipt.blockNumber) : undefined);
      }
      if (seen.get(one.hash) !== one.height) return false;
    }
  }
  return true;
}
