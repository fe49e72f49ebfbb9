import { access } from 'node:fs/promises';
import { createWallet } from '@skerry/client';
import type { Write } from '@skerry/database';
import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { RpcPool } from '@skerry/indexer';
import { type Logger, loadOrCreateKeyFile, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { Intake } from '../../intake/intake.ts';
import type { EventLog } from '../../notify/events/log.ts';
import type { IpfsFiles } from '../../store/ipfs/ipfs-files.ts';
import type { Schema } from '../../store/schema.ts';
import { adviseOnEmitter } from '../advice.ts';
import { CatchUp } from './catch-up.ts';
import { Emitter } from './emitter.ts';
import { followOnce, forgiveEmitters } from './follower.ts';
import { Packer } from './packer.ts';
import { Processor } from './processor.ts';
import { type ChainReader, createIndexedChain } from './reader.ts';
import type { AnchorSettings, PackingSettings } from './settings.ts';

export interface AnchoringOptions {
  readonly pool: pg.Pool;
  readonly db: Kysely<Schema>;
  readonly write: Write<Schema>;
  readonly files: IpfsFiles;
  readonly intake: Intake;
  readonly events: EventLog;
  readonly anchors: readonly AnchorSettings[];
  readonly now: () => number;
  readonly random?: (() => number) | undefined;
  readonly reserve?: DiskReserve | undefined;
  readonly log: Logger;
}

export interface Anchoring extends AsyncDisposable {
  /** Messages of archives that did not verify, since the start. */
  readonly invalid: number;
  /** How often each loop failed and began anew, by its name, of all contracts. */
  readonly restarts: ReadonlyMap<string, number>;
}

/** The key must be there: one that is made now has no funds. Throws INVALID_CONFIG. */
async function loadWallet({ keyFile }: PackingSettings) {
  try {
    await access(keyFile);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new AppError('INVALID_CONFIG', `cannot read the archive key ${keyFile} (${code})`);
  }
  return createWallet(await loadOrCreateKeyFile(keyFile));
}

/** What the loops of one contract share. */
interface Followed extends AnchoringOptions {
  readonly settings: AnchorSettings;
  readonly chain: ChainReader;
  readonly catchUp: CatchUp;
  readonly random: () => number;
  readonly signal: AbortSignal;
}

async function createPacker(followed: Followed, packing: PackingSettings): Promise<Packer> {
  const { log, signal, settings, catchUp } = followed;
  const { network, contract } = settings;
  const wallet = await loadWallet(packing);
  const advice = adviseOnEmitter(settings, wallet.address);
  if (advice !== undefined) log.warn({ address: wallet.address }, advice);
  const rpc = new RpcPool({
    urls: network.endpoints,
    timeoutMs: network.timeout_ms,
    restAfterLieMs: network.lie_rest_ms,
    log,
    signal,
  });
  const { maxFeeGwei } = packing;
  const emitter = new Emitter({ rpc, wallet, chainId: network.chain_id, contract, maxFeeGwei });
  const isCaughtUp = () => catchUp.isDone;
  return new Packer({ ...followed, emitter, network: network.name, settings: packing, isCaughtUp });
}

/** What a loop does each time. @returns whether there is more to do at once */
type Step = () => Promise<boolean>;

/** The loops of one contract, by their names. */
function stepsOf(followed: Followed, processor: Processor, packer: Packer | undefined) {
  const { events, catchUp } = followed;
  let isForgiven = false;
  const follow: Step = async () => {
    if (!isForgiven) await forgiveEmitters(followed);
    isForgiven = true;
    const { gone, isCut, look } = await followOnce(followed);
    if (look) catchUp.note(look);
    if (gone > 0) events.wake();
    return isCut;
  };
  const archives: Step = async () => {
    const isBusy = await processor.round();
    const isDating = await processor.date();
    if (isBusy || isDating) events.wake();
    return isBusy || isDating;
  };
  const packing = async () => {
    await packer?.round();
    return false;
  };
  return Object.entries({ follow, archives, ...(packer && { packing }) });
}

/** Follows the contracts that the settings name, and packs where they say so. */
export async function startAnchoring(options: AnchoringOptions): Promise<Anchoring> {
  const { anchors, log, reserve = BOUNDLESS, random = Math.random } = options;
  const stop = new AbortController();
  const { signal } = stop;
  await using stack = new AsyncDisposableStack();
  const running: Promise<void>[] = [];
  stack.defer(async () => {
    stop.abort();
    await Promise.all(running);
  });
  const processors: Processor[] = [];
  const restarts = new Map<string, number>();
  const counted = async (name: string, step: Step): Promise<boolean> => {
    try {
      reserve.take();
      return await step();
    } catch (error) {
      if (!signal.aborted) restarts.set(name, restarts.get(name)! + 1);
      throw error;
    }
  };
  for (const settings of anchors) {
    const chain = createIndexedChain(options.pool, settings.network.name, settings.contract);
    const followed = { ...options, chain, catchUp: new CatchUp(), settings, signal, random };
    const processor = new Processor(followed);
    processors.push(processor);
    const packer = settings.packing && (await createPacker(followed, settings.packing));
    for (const [name, step] of stepsOf(followed, processor, packer)) {
      const loop = { name: `anchoring: ${name}`, intervalMs: settings.pollMs, signal, log };
      restarts.set(name, restarts.get(name) ?? 0);
      running.push(runLoop(loop, () => counted(name, step)));
    }
  }
  const owned = stack.move();
  return {
    get invalid() {
      return processors.reduce((sum, one) => sum + one.invalid, 0);
    },
    restarts,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
