import type { Signer } from '@skerry/client';
import type { Caller } from './ask.ts';
import type { Tally } from './tally.ts';

/** Where the network under test can be asked from outside. */
export interface Places {
  /** Of each core node, by an address that is not loopback: nobody is exempt there. */
  readonly cores: readonly string[];
  /** Of each compute node. */
  readonly computes: readonly string[];
  readonly gatewayApi: string;
  readonly scheduler: string;
}

/** Somebody who uses the network, for good or ill, until told to stop. */
export interface Actor {
  readonly who: string;
  run(place: Stage): Promise<void>;
}

/** What an actor is given. */
export interface Stage {
  readonly places: Places;
  readonly tally: Tally;
  readonly caller: Caller;
  readonly signer: Signer;
  /** Ends with the run. */
  readonly signal: AbortSignal;
  /** Resolves after about so many milliseconds, or at once when the run ends. */
  pause(ms: number): Promise<void>;
}

export const api = (core: string) => `${core}/api/v0`;
