import { createWallet } from '@skerry/client';
import { findFreshness, type Indexer, stateOf } from '@skerry/indexer';
import { cached, loadKeyFile } from '@skerry/kit';
import type { AnchorSettings } from './anchoring/settings.ts';

/** However many ask, the chains are looked at this often at most. */
const LOOK_MS = 10_000;

const FILES = 'the file of SKERRY_CORE_ANCHOR_FILE or SKERRY_CORE_INDEXER_FILE';

/** Why the node refuses the archives that it packs itself; undefined where it reads them. Pure. */
export const adviseOnEmitter = (
  { network, emitters }: Pick<AnchorSettings, 'network' | 'emitters'>,
  address: string,
): string | undefined =>
  emitters.has(address)
    ? undefined
    : `the node refuses the archives that it packs itself: ${address} is missing from the emitters of ${network.name} in the file of SKERRY_CORE_ANCHOR_FILE`;

async function adviseOnPacking(settings: AnchorSettings): Promise<string | undefined> {
  if (!settings.packing) return undefined;
  // A process that cannot read it packs nothing.
  const key = await loadKeyFile(settings.packing.keyFile).catch(() => undefined);
  return key === undefined ? undefined : adviseOnEmitter(settings, createWallet(key).address);
}

export interface ChainAdviceOptions {
  readonly indexer: Pick<Indexer, 'pool' | 'settings' | 'stallMs'>;
  readonly anchors: readonly AnchorSettings[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since the process began: no network has stood still for longer, as far as it can tell. */
  readonly runningMs?: () => number;
}

async function adviseOnNetwork(
  { indexer, now, runningMs = () => performance.now() }: ChainAdviceOptions,
  network: string,
): Promise<string | undefined> {
  const freshness = await findFreshness(indexer.pool, network);
  if (!freshness) return undefined;
  const stallMs = indexer.stallMs(network);
  if (stallMs === undefined) return undefined;
  const state = stateOf(freshness, stallMs, now());
  if (state === 'halted')
    return `the chain ${network} is not read on (${freshness.halt?.code}): ${freshness.halt?.message}; see docs/indexer.md`;
  if (state !== 'stalled' || runningMs() <= stallMs) return undefined;
  return `nothing new was read of the chain ${network} for ${Math.floor(stallMs / 1_000)} s or more: check its endpoints in ${FILES}`;
}

/** What is wrong with the chains that the node reads, in words; undefined where nothing is. */
export function createChainAdvice(options: ChainAdviceOptions): () => Promise<string | undefined> {
  const { indexer, anchors } = options;
  const { networks } = indexer.settings;
  if (networks.length === 0) return async () => undefined;
  return cached(LOOK_MS, async () => {
    const advice = [
      ...(await Promise.all(anchors.map(adviseOnPacking))),
      ...(await Promise.all(networks.map(({ name }) => adviseOnNetwork(options, name)))),
    ];
    return advice.filter((one) => one !== undefined).join('; ') || undefined;
  });
}
