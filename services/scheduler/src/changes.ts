import { type Instance, isSamePlacement, type Placement } from './view.ts';

export interface Change {
  readonly instanceId: string;
  readonly placement: Placement;
}

export interface Changes {
  /** To be told at once. */
  readonly decisions: readonly Change[];
  /** The same decision in other words ("has 1024 MiB free"): they change with every instance, so they are told in a batch. */
  readonly wordings: readonly Change[];
}

function isWording(said: Placement, wanted: Placement): boolean {
  return said.nodeId === null && wanted.nodeId === null && said.reason?.code === wanted.reason?.code;
}

/** What the network has not been told yet: the plan against what was said. */
export function listChanges(
  said: ReadonlyMap<string, Instance>,
  placements: ReadonlyMap<string, Placement>,
): Changes {
  const decisions: Change[] = [];
  const wordings: Change[] = [];
  for (const [instanceId, placement] of placements) {
    const before = said.get(instanceId);
    if (before && isSamePlacement(before, placement)) continue;
    (before && isWording(before, placement) ? wordings : decisions).push({ instanceId, placement });
  }
  return { decisions, wordings };
}
