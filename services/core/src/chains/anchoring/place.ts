/** What the chain says of an archive's last transaction. */
export interface Seen {
  readonly receipt: 'none' | 'succeeded' | 'reverted';
  /** Of transactions of the key that are in blocks: the nonce that the chain takes next. */
  readonly count: number;
}

/** Where an archive's next transaction goes. */
export interface Place {
  readonly nonce: number;
  /** Whether a transaction of the same archive may still be there, which a dearer one replaces. */
  readonly isTaken: boolean;
}

/** The lowest nonce that the chain can take and that no other archive waits at. */
function firstFree(count: number, others: ReadonlySet<number>): number {
  let nonce = count;
  while (others.has(nonce)) nonce++;
  return nonce;
}

/**
 * Where an archive that is in no block goes next; undefined where its transaction is in one, and the follower is about to
 * see it there. A nonce below that nobody fills would hold it up for ever: it moves down to that one. Pure.
 *
 * @param own the nonce of its last transaction
 * @param others nonces of other archives that may still leave the chain
 */
export function decidePlace(
  own: number | null,
  others: ReadonlySet<number>,
  { receipt, count }: Seen,
): Place | undefined {
  if (receipt === 'succeeded') return undefined;
  const free = firstFree(count, others);
  const isTaken = own === free && receipt === 'none';
  return { nonce: free, isTaken };
}
