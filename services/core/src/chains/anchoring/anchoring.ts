import { access } from 'node:fs/promises';
import { createWallet } from '@skerry/client';
import type { Write } from '@skerry/database';
import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { RpcPool } from '@skerry/indexer';
import { Failures, type Logger, loadOrCreateKeyFile, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { Intake } from '../../intake/intake.ts';
import type { EventLog } from '../../notify/events/log.ts';
import type { IpfsFiles } from '../../store/ipfs/ipfs-files.ts';
import type { Schema } from '../../store/schema.ts';
import { Emitter } from './emitter.ts';
import { followOnce } from './follower.ts';
import { Packer } from './packer.ts';
import { Processor } from './processor.ts';
import { createIndexedChain } from './reader.ts';
import type { AnchorSettings, PackingSettings } from './settings.ts';

/** A loop that fails waits longer each time, up to this. */
const FAILURE_MAX_MS = 30_000;

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

/** Follows the contracts that the settings name, and packs where they say so. */
export async function startAnchoring(options: AnchoringOptions): Promise<Anchoring> {
  const { anchors, log, events, reserve = BOUNDLESS } = options;
  const stop = new AbortController();
  const { signal } = stop;
  await using stack = new AsyncDisposableStack();
  const running: Promise<void>[] = [];
  stack.defer(async () => {
    stop.abort();
    await Promise.all(running);
  });
  const processors: Processor[] = [];

  /** Runs `body` again and again; after a failure later. */
  const repeat = async (name: string, pollMs: number, body: () => Promise<boolean>) => {
    const failures = new Failures({
      log,
      what: 'an anchoring iteration failed; it continues',
      fields: { loop: name },
      maxMs: FAILURE_MAX_MS,
    });
    while (!signal.aborted) {
      let waitMs = pollMs;
      try {
        reserve.take();
        if (await body()) waitMs = 0;
        failures.clear();
      } catch (error) {
        if (signal.aborted) return;
        waitMs = Math.max(pollMs, failures.note(error));
      }
      if (waitMs > 0 && !(await pause(waitMs, signal))) return;
    }
  };

  for (const settings of anchors) {
    const { network, contract, packing, pollMs } = settings;
    const chain = createIndexedChain(options.pool, network.name, contract);
    const common = { ...options, chain, settings, signal, random: options.random ?? Math.random };
    const processor = new Processor(common);
    processors.push(processor);
    running.push(
      repeat('follow', pollMs, async () => {
        const { gone, isCut } = await followOnce(common);
        if (gone > 0) events.wake();
        return isCut;
      }),
      repeat('archives', pollMs, async () => {
        const isBusy = await processor.round();
        const isDating = await processor.date();
        if (isBusy || isDating) events.wake();
        return isBusy || isDating;
      }),
    );
    if (!packing) continue;
    const wallet = await loadWallet(packing);
    if (!settings.emitters.has(wallet.address))
      log.warn(
        { address: wallet.address },
        "this node's own archives are not in the list of archives to read",
      );
    const emitter = new Emitter({
      rpc: new RpcPool({
        urls: network.endpoints,
        timeoutMs: network.timeout_ms,
        restAfterLieMs: network.lie_rest_ms,
        now: Date.now,
        log,
        signal,
      }),
      wallet,
      chainId: network.chain_id,
      contract,
      maxFeeGwei: packing.maxFeeGwei,
      log,
    });
    const packer = new Packer({ ...common, emitter, network: network.name, settings: packing });
    running.push(
      repeat('packing', pollMs, async () => {
        await packer.round();
        return false;
      }),
    );
  }
  const owned = stack.move();
  return {
    get invalid() {
      return processors.reduce((sum, one) => sum + one.invalid, 0);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
