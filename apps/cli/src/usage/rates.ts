import type { GuestUsageListView, GuestUsageView } from '@skerry/protocol/api/compute/usage';

/** What is counted, between two readings: by the second. */
export interface UsageRates {
  /** Of one core; 2 are two cores. */
  readonly cpu: number | null;
  readonly in_bytes: number | null;
  readonly out_bytes: number | null;
  readonly in_packets: number | null;
  readonly out_packets: number | null;
}

/** A guest as the second reading has it. `rates` is null where the first does not have it, and a rate where one of them does not tell it. */
export interface RatedUsage extends GuestUsageView {
  readonly rates: UsageRates | null;
}

export const SORTS = ['cpu', 'cpu-time', 'memory', 'disk', 'in', 'out', 'packets', 'since'] as const;
export type Sort = (typeof SORTS)[number];

const keyOf = ({ kind, item_hash: hash }: GuestUsageView) => `${kind} ${hash}`;
const SECOND_MS = 1_000;

/** What every guest of the second reading took since the first. Pure. */
export function rateUsage(first: GuestUsageListView, second: GuestUsageListView): RatedUsage[] {
  const seconds = (Date.parse(second.read_at) - Date.parse(first.read_at)) / SECOND_MS;
  const before = new Map(first.guests.map((one) => [keyOf(one), one]));
  return second.guests.map((now) => ({ ...now, rates: ratesOf(before.get(keyOf(now)), now, seconds) }));
}

function ratesOf(
  before: GuestUsageView | undefined,
  now: GuestUsageView,
  seconds: number,
): UsageRates | null {
  if (before === undefined || seconds <= 0) return null;
  const rate = (of: (one: GuestUsageView) => number | null | undefined) => {
    const [from, to] = [of(before), of(now)];
    // What counts was made anew, as when the guest was started again.
    if (typeof from !== 'number' || typeof to !== 'number' || to < from) return null;
    return (to - from) / seconds;
  };
  return {
    cpu: before.since === now.since ? rate(({ cpu }) => cpu.seconds) : null,
    in_bytes: rate(({ network }) => network?.in_bytes),
    out_bytes: rate(({ network }) => network?.out_bytes),
    in_packets: rate(({ network }) => network?.in_packets),
    out_packets: rate(({ network }) => network?.out_packets),
  };
}

const packetsOf = ({ rates }: RatedUsage) =>
  rates?.in_packets == null && rates?.out_packets == null
    ? null
    : (rates.in_packets ?? 0) + (rates.out_packets ?? 0);

/** The most comes first; of `since` the oldest. */
const FIGURES: Readonly<Record<Sort, (one: RatedUsage) => number | null | undefined>> = {
  cpu: ({ rates }) => rates?.cpu,
  'cpu-time': ({ cpu }) => cpu.seconds,
  memory: ({ memory }) => memory.bytes,
  disk: ({ disk }) => disk?.bytes,
  in: ({ rates }) => rates?.in_bytes,
  out: ({ rates }) => rates?.out_bytes,
  packets: packetsOf,
  since: ({ since }) => (since === null ? null : -Date.parse(since)),
};

/** Who has the most of something first, who has nothing of it last, in the order of their hashes where it is the same. Pure. */
export function sortUsage(guests: readonly RatedUsage[], sort: Sort): RatedUsage[] {
  const figureOf = (one: RatedUsage) => FIGURES[sort](one) ?? Number.NEGATIVE_INFINITY;
  const compare = (a: number, b: number) => (a === b ? 0 : b - a);
  return guests.toSorted((a, b) => compare(figureOf(a), figureOf(b)) || (a.item_hash < b.item_hash ? -1 : 1));
}
