import type { NodeSet } from './node-set.ts';
import { Offers } from './offers.ts';
import type { SetFollower } from './set-follower.ts';
import { Syncer, type SyncerOptions } from './syncer.ts';

/** The room of keeping in step with other nodes. */
export interface Sync {
  readonly set: NodeSet;
  readonly syncer: Syncer;
  readonly offers: Offers;
  /** Counts the messages that are kept; until then the set answers nobody. */
  load(): Promise<void>;
  /** Follows what other processes wrote to the database; peers are asked at once for what it turned out to have lost. */
  look(): Promise<void>;
  /** How often the database turned out to have lost what was followed. */
  readonly losses: number;
}

export interface SyncOptions extends Omit<SyncerOptions, 'set'> {
  /** It is told what becomes durable from before `load` on. */
  readonly follower: SetFollower;
}

export function createSync({ follower, ...options }: SyncOptions): Sync {
  const { set } = follower;
  const syncer = new Syncer({ ...options, set });
  const offers = new Offers({ set, source: options.intake.offer, reputation: syncer.reputation });
  return {
    ...{ set, syncer, offers },
    get losses() {
      return follower.losses;
    },
    load: () => follower.load(),
    async look() {
      if (await follower.look()) syncer.startOver();
    },
  };
}
