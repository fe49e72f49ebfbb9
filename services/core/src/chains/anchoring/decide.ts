import type { ContractEvent } from '@skerry/indexer';

/** An event of the contract as it is kept. */
export interface KeptEvent {
  readonly blockNumber: number;
  readonly logIndex: number;
  readonly transactionHash: string;
  /** Of the block, Unix seconds; null where an older release kept it. */
  readonly blockTime: number | null;
}

const keyOf = ({ blockNumber, logIndex, transactionHash }: Omit<KeptEvent, 'blockTime'>) =>
  `${blockNumber} ${logIndex} ${transactionHash}`;

export interface Changes<Kept> {
  readonly gone: readonly Kept[];
  readonly fresh: readonly ContractEvent[];
  readonly retimed: readonly (Kept & { readonly blockTime: number })[];
}

export const isNothing = ({ gone, fresh, retimed }: Changes<unknown>): boolean =>
  gone.length + fresh.length + retimed.length === 0;

/**
 * What a look at the chain changes: events that it does not have any more, events that are new, and those that stand at their place in
 * a block of another time. Pure.
 *
 * @param kept from the first block that can change on
 * @param seen the chain's from the same block on
 * @param upTo where the look ends; what is kept beyond it is gone as well, unless there is more to be read
 */
export function decideChanges<Kept extends KeptEvent>(
  kept: readonly Kept[],
  seen: readonly ContractEvent[],
  upTo: number,
  isCut: boolean,
): Changes<Kept> {
  const standing = new Map(seen.map((one) => [keyOf(one), one.timestamp]));
  const known = new Set(kept.map(keyOf));
  return {
    gone: kept.filter((one) => !standing.has(keyOf(one)) && !(isCut && one.blockNumber > upTo)),
    fresh: seen.filter((one) => !known.has(keyOf(one))),
    retimed: kept.flatMap((one) => {
      const blockTime = standing.get(keyOf(one)) ?? one.blockTime;
      return blockTime === null || blockTime === one.blockTime ? [] : [{ ...one, blockTime }];
    }),
  };
}
