import type { Header } from './shape.ts';

export interface Finality {
  /** The last block that the chain calls final. */
  readonly finalized: number;
  /** The last one that can never be undone. */
  readonly floor: number;
}

/**
 * What a look at the endpoints makes final. The floor only rises; a chain that does not become final (or does not say so)
 * leaves a window of `depthMax` blocks that may be undone. Pure.
 *
 * @param finalized by the endpoints' word; null where they have none
 */
export function decideFinality(
  floor: number,
  {
    head,
    finalized,
    depth,
    depthMax,
  }: { head: number; finalized: number | null; depth: number; depthMax: number },
): Finality {
  const final = Math.max(0, finalized === null ? head - depth : Math.min(finalized, head));
  return { finalized: final, floor: Math.max(floor, final, head - depthMax) };
}

/** Whether blocks follow each other by number and parent hash. */
export function isChain(blocks: readonly Pick<Header, 'number' | 'hash' | 'parentHash'>[]): boolean {
  return blocks.every((block, index) => {
    const parent = blocks[index - 1];
    return !parent || (block.number === parent.number + 1 && block.parentHash === parent.hash);
  });
}
