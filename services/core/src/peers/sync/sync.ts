import type { NodeSet } from './node-set.ts';
import { Offers } from './offers.ts';
import { Syncer, type SyncerOptions } from './syncer.ts';

/** The room of keeping in step with other nodes. */
export interface Sync {
  readonly set: NodeSet;
  readonly syncer: Syncer;
  readonly offers: Offers;
  /** Counts the messages that are kept; until then the set answers nobody. */
  load(): Promise<void>;
}

/** `set` is told what becomes durable from before `load` on. */
export function createSync(options: SyncerOptions): Sync {
  const { set, db, intake } = options;
  const syncer = new Syncer(options);
  const offers = new Offers({ set, source: intake.offer, reputation: syncer.reputation });
  return { set, syncer, offers, load: () => set.load(db) };
}
