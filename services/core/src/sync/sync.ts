import type { NodeSet } from './node-set.ts';
import { Syncer, type SyncerOptions } from './syncer.ts';

/** The room of keeping in step with other nodes. */
export interface Sync {
  readonly set: NodeSet;
  readonly syncer: Syncer;
  /** Counts the messages that are kept; until then the set answers nobody. */
  load(): Promise<void>;
}

/** `set` is told what becomes durable from before `load` on. */
export function createSync(options: SyncerOptions): Sync {
  const { set, db } = options;
  return { set, syncer: new Syncer(options), load: () => set.load(db) };
}
