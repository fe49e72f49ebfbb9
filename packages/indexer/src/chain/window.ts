import type { Header } from './shape.ts';

/**
 * The last block that can never be undone. It only rises; a chain that does not become final (or does not say so)
 * leaves a window of `depthMax` blocks that may be undone. Pure.
 */
export function decideFloor(
  floor: number,
  {
    head,
    finalized,
    depth,
    depthMax,
  }: { head: number; finalized: number | null; depth: number; depthMax: number },
): number {
  const final = finalized === null ? head - depth : Math.min(finalized, head);
  return Math.max(floor, final, head - depthMax);
}

/** Whether blocks follow each other by number and parent hash. */
export function isChain(blocks: readonly Pick<Header, 'number' | 'hash' | 'parentHash'>[]): boolean {
  return blocks.every((block, index) => {
    const parent = blocks[index - 1];
    return !parent || (block.number === parent.number + 1 && block.parentHash === parent.hash);
  });
}
