import type { Instance, Node, Placement } from '../../view.ts';
import type { NodeLoad } from '../load.ts';
import { Planner, type PlannerOptions } from '../planner.ts';
import type { Standing } from '../standing.ts';

export interface PlanInput extends PlannerOptions {
  readonly nodes: Iterable<Node>;
  readonly instances: Iterable<Instance>;
  readonly standingOf: (node: Node) => Standing;
}

export interface Plan {
  /** One for every instance: a node, or the reason why there is none. */
  readonly placements: ReadonlyMap<string, Placement>;
  readonly loads: ReadonlyMap<string, NodeLoad>;
}

/** Where every instance should be, from the beginning: a pure function, whatever the order of what it is given. */
export function plan(input: PlanInput): Plan {
  const planner = new Planner(input);
  for (const node of input.nodes) planner.setNode(node, input.standingOf(node));
  for (const instance of input.instances) planner.setInstance(instance);
  planner.run();
  return {
    placements: new Map(Array.from(planner.instanceIds, (id) => [id, planner.get(id)!])),
    loads: planner.loads,
  };
}
