import { findFreshness } from '@skerry/indexer';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { DeployedReadings } from '../../node/metrics/deployed.ts';
import type { CoreMetrics } from '../../node/metrics/metrics.ts';
import type { Schema } from '../../store/schema.ts';
import type { AnchorSettings } from './settings.ts';
import { countEvents, loadFollowed } from './store.ts';

/** The chain whose heights have names on deployed nodes. */
const NAMED_CHAIN = 'ETH';

export interface AnchoringSources {
  readonly db: Kysely<Schema>;
  readonly pool: pg.Pool;
  readonly anchors: readonly AnchorSettings[];
  /** Messages of archives that did not verify, since the start. */
  readonly invalid: () => number;
  /** How often each loop began anew; undefined where this process follows nothing. */
  readonly restarts: () => ReadonlyMap<string, number> | undefined;
}

async function readHeights(
  { db, pool }: AnchoringSources,
  network: string,
): Promise<{ committed: number | null; reference: number | null }> {
  const [followed, freshness] = await Promise.all([loadFollowed(db, network), findFreshness(pool, network)]);
  return { committed: followed.readBlock, reference: freshness?.head ?? null };
}

/** Tells how far the chain is read and what became of archives, also under the names of deployed nodes. */
export function watchAnchoring(metrics: CoreMetrics, sources: AnchoringSources): void {
  const { db, anchors, invalid, restarts } = sources;
  if (anchors.length === 0) return;
  let counted: Awaited<ReturnType<typeof countEvents>> = [];
  metrics.tell(async (): Promise<DeployedReadings> => {
    counted = await countEvents(db);
    const waiting = counted.find(({ state }) => state === 'waiting')?.total ?? 0;
    const named = anchors.find(({ chain }) => chain === NAMED_CHAIN);
    if (!named) return { pyaleph_status_sync_pending_txs_total: waiting };
    const { committed, reference } = await readHeights(sources, named.network.name);
    return {
      pyaleph_status_sync_pending_txs_total: waiting,
      pyaleph_status_chain_eth_last_committed_height: committed,
      pyaleph_status_chain_eth_height_reference_total: reference,
    };
  });
  metrics.own.watch(
    'skerry_anchor_messages_invalid_total',
    'messages of archives that did not verify, since the start',
    invalid,
  );
  metrics.own.watchCounter(
    'skerry_anchor_restarts_total',
    'how often following chains, reading archives or packing failed and began anew',
    () => [...(restarts() ?? [])].map(([loop, value]) => ({ labels: { loop }, value })),
    ['loop'],
  );
  metrics.own.watch(
    'skerry_anchor_events',
    'events of anchoring contracts as the chains have them, by what became of their archives',
    () => counted.map(({ state, code, total }) => ({ labels: { state, code }, value: total })),
    ['state', 'code'],
  );
}
