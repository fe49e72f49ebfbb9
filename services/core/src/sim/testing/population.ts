import type { SeededDice } from './dice.ts';
import type { World } from './world.ts';

/** Who sends to a run's nodes beside its honest clients: each acts now and then, by the run's dice. */
export interface Population {
  readonly name: string;
  act(world: World, dice: SeededDice): Promise<void>;
}
