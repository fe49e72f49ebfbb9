import type { ClientMessage, Clients } from './clients.ts';
import type { SeededDice } from './dice.ts';
import type { SimNode } from './node.ts';

/** What a population finds: the time, the nodes, the honest clients, and a node that takes its messages. */
export interface Place {
  readonly nowMs: number;
  readonly nodes: readonly SimNode[];
  readonly clients: Clients;
  /** Brings a message to a node that is up, and remembers it where that acknowledged it. @returns the status */
  submit(message: ClientMessage): Promise<number | undefined>;
}

/** Who sends to a run's nodes beside its honest clients: each acts now and then, by the run's dice. */
export interface Population {
  readonly name: string;
  act(place: Place, dice: SeededDice): Promise<void>;
}
