import { nanoOf } from './amounts.ts';
import type { CreditDistribution, CreditExpense } from './content.ts';

/**
 * The ledger: a pure fold of the entries that trusted publishers signed, in whatever order they arrive. Each entry has a
 * key that says what it is for, a transfer on a chain or a period of a resource; of several with one key the earliest by
 * (time, item hash, place) counts, and no other. So nothing is credited or charged twice.
 */
export interface LedgerEntry {
  readonly key: string;
  readonly kind: 'purchase' | 'expense';
  readonly owner: string;
  /** Billionths of a credit; below zero for what was used. */
  readonly nano: bigint;
  /** What it was for: the hash of a transaction, a note of the publisher, the item hash of a resource. */
  readonly ref: string;
  /** Its place in its message. */
  readonly place: number;
}

export interface StampedEntry extends LedgerEntry {
  /** Unix seconds, of the message. */
  readonly time: number;
  readonly itemHash: string;
}

/** Names a transfer: the same for everybody who reads the chain. */
export const transferKey = (chainId: number, txHash: string, logIndex: number): string =>
  `${chainId}/${txHash}/${logIndex}`;

/** Names what is charged for a resource in a period. */
export const chargeKey = (ref: string, periodStart: number): string => `${ref}@${periodStart}`;

export function purchasesOf({ chain_id: chainId, credits }: CreditDistribution): LedgerEntry[] {
  return credits.map((credit, place) => {
    const isTransfer = credit.tx_hash !== undefined;
    const ref = isTransfer ? credit.tx_hash! : credit.ref!;
    return {
      key: isTransfer ? transferKey(chainId!, ref, credit.log_index!) : `grant/${ref}`,
      kind: 'purchase',
      owner: credit.address,
      nano: nanoOf(credit.amount),
      ref,
      place,
    };
  });
}

export function expensesOf({ start_date: start, credits }: CreditExpense): LedgerEntry[] {
  return credits.map(({ address, ref, nanocredits }, place) => ({
    key: chargeKey(ref, start),
    kind: 'expense',
    owner: address,
    nano: -BigInt(nanocredits),
    ref,
    place,
  }));
}

const isEarlier = (a: StampedEntry, b: StampedEntry) => {
  if (a.time !== b.time) return a.time < b.time;
  return a.itemHash !== b.itemHash ? a.itemHash < b.itemHash : a.place < b.place;
};

/** The entries that count: one for each key. */
export function countedEntries(entries: Iterable<StampedEntry>): Map<string, StampedEntry> {
  const counted = new Map<string, StampedEntry>();
  for (const entry of entries) {
    const before = counted.get(entry.key);
    if (before === undefined || isEarlier(entry, before)) counted.set(entry.key, entry);
  }
  return counted;
}

/** Every owner's balance in billionths of a credit as of a time, that second included. */
export function balancesAt(entries: Iterable<StampedEntry>, time: number): Map<string, bigint> {
  const balances = new Map<string, bigint>();
  for (const { owner, nano, time: at } of countedEntries(entries).values())
    if (at <= time) balances.set(owner, (balances.get(owner) ?? 0n) + nano);
  return balances;
}
