import { STALL_RULE } from '../../stall-rule.ts';
import type { Pace } from './direction.ts';

/** A connection, by what its directions hold. */
export interface Holding {
  /** A /24 or a /48; null where it is not known, as one network. */
  readonly network: string | null;
  /** Of stalled directions, and of those and slow ones. */
  readonly stalledBytes: number;
  readonly heldBytes: number;
  /** When the one that was stalled for longest last moved. */
  readonly movedMs: number;
  /** By its receivers, since it began. */
  readonly takenBytes: number;
}

type Counted = Exclude<Pace, 'fast'>;
const MOST_TIMES = { stalled: 1, slow: STALL_RULE.readingTimes } as const satisfies Record<Counted, number>;
const bytesOf = (one: Holding, pace: Counted) => (pace === 'stalled' ? one.stalledBytes : one.heldBytes);

interface Share<One> {
  bytes: number;
  readonly own: One[];
}

function sharesOf<One extends Holding>(all: Iterable<One>, pace: Counted): Share<One>[] {
  const shares = new Map<string | null, Share<One>>();
  for (const one of all) {
    const bytes = bytesOf(one, pace);
    if (bytes === 0) continue;
    const share = shares.get(one.network);
    if (share) {
      share.bytes += bytes;
      share.own.push(one);
    } else shares.set(one.network, { bytes, own: [one] });
  }
  return [...shares.values()].sort((a, b) => b.bytes - a.bytes);
}

/**
 * Who was stalled for longest goes first; then who has taken least: of those who read, the ones that have done so for longest stay, and a
 * crowd of newcomers, of whom nobody can say yet whether they will read, ends its own.
 */
function compare(a: Holding, b: Holding): number {
  const [isStalled, other] = [a.stalledBytes > 0, b.stalledBytes > 0];
  if (isStalled !== other) return isStalled ? -1 : 1;
  return isStalled ? a.movedMs - b.movedMs : a.takenBytes - b.takenBytes;
}

/** Of the networks that hold most, until another one holds more. */
function crowdingOfPace<One extends Holding>(all: Iterable<One>, pace: Counted, most: number): One[] {
  const shares = sharesOf(all, pace);
  let left = shares.reduce((sum, { bytes }) => sum + bytes, 0);
  const found: One[] = [];
  for (let networks = 0; networks < STALL_RULE.mostNetworks && left > most; networks++) {
    const [heaviest, next] = shares.sort((a, b) => b.bytes - a.bytes);
    heaviest!.own.sort(compare);
    while (heaviest!.own.length > 0 && left > most && heaviest!.bytes >= (next?.bytes ?? 0)) {
      const one = heaviest!.own.shift()!;
      heaviest!.bytes -= bytesOf(one, pace);
      left -= bytesOf(one, pace);
      found.push(one);
    }
  }
  return found;
}

/** Which connections end where stalled ones hold more than `limitBytes` together, or slow ones with them more than several times that. */
export function crowdingOf<One extends Holding>(all: readonly One[], limitBytes: number): One[] {
  const stalled = crowdingOfPace(all, 'stalled', limitBytes * MOST_TIMES.stalled);
  const gone = new Set(stalled);
  const others = all.filter((one) => !gone.has(one));
  return [...stalled, ...crowdingOfPace(others, 'slow', limitBytes * MOST_TIMES.slow)];
}
