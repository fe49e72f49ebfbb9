import type { NodeSet } from './node-set.ts';
import { OfferTaker } from './offers.ts';
import { Syncer, type SyncerOptions } from './syncer.ts';

/** The room of keeping in step with other nodes. */
export interface Sync {
  readonly set: NodeSet;
  readonly syncer: Syncer;
  readonly offers: OfferTaker;
  /** Counts the messages that are kept; until then the set answers nobody. */
  load(): Promise<void>;
}

/** `set` is told what becomes durable from before `load` on. */
export function createSync(options: SyncerOptions): Sync {
  const { set, db, taker } = options;
  const syncer = new Syncer(options);
  const offers = new OfferTaker({ set, taker, reputation: syncer.reputation });
  return { set, syncer, offers, load: () => set.load(db) };
}
