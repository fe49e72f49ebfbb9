import { type Instance, isRoutable, isSameInstance, keepPlace } from '../table/instance.ts';

/** What a full sync does to the table. */
export interface SyncDecision {
  readonly put: readonly Instance[];
  readonly remove: readonly Instance[];
  readonly added: number;
  readonly changed: number;
  /** Instances that the source no longer has, or has without an address, and that are kept since they are suspiciously many. */
  readonly heldBack: number;
}

/** Losing this many instances at once, and at least this share of all, is taken for a fault of the source. */
export const MASS_LOSS_MIN = 10;
const MASS_LOSS_SHARE = 0.5;

/** A source that suddenly knows nothing, or much less, is more likely broken than right. */
export function isSuspicious(lost: number, known: number, isSourceEmpty: boolean): boolean {
  return lost > 0 && (isSourceEmpty || (lost >= MASS_LOSS_MIN && lost >= known * MASS_LOSS_SHARE));
}

export interface SyncInput {
  readonly known: ReadonlyMap<string, Instance>;
  /** All that the source has, by hash. */
  readonly source: ReadonlyMap<string, Instance>;
  /** Hashes that the event stream told of, or that could not be read, while the source was read: what we have is as new. */
  readonly untouchable: ReadonlySet<string>;
  /** An operator said that what is gone is meant to be gone. */
  readonly acceptLoss: boolean;
}

/** Compares what is known with what the source has; nothing is lost where too much would be. */
export function decideSync({ known, source, untouchable, acceptLoss }: SyncInput): SyncDecision {
  const put: Instance[] = [];
  const losing: Instance[] = [];
  let added = 0;
  for (const [hash, told] of source) {
    const ours = known.get(hash);
    const theirs = keepPlace(told, ours);
    if (untouchable.has(hash) || (ours && isSameInstance(ours, theirs))) continue;
    if (!ours) added++;
    if (ours && isRoutable(ours) && theirs.ipv6 === null) losing.push(theirs);
    else put.push(theirs);
  }
  const gone = Array.from(known.values()).filter(({ hash }) => !source.has(hash) && !untouchable.has(hash));
  const lost = gone.length + losing.length;
  const hold = !acceptLoss && isSuspicious(lost, known.size, source.size === 0);
  const accepted = hold ? put : [...put, ...losing];
  return {
    put: accepted,
    remove: hold ? [] : gone,
    added,
    changed: accepted.length - added,
    heldBack: hold ? lost : 0,
  };
}
