import { aggregateSubject, type MessageStatus } from '@skerry/protocol';
import fc from 'fast-check';
import { DAY_SECONDS } from '../labels.ts';
import { type MessageFilter, PROPERTY_NAMES, type PropertyName } from '../properties.ts';
import { shapeKeyOf, shapeOf } from '../shape.ts';

/** Small random worlds of messages, and what each filter means, said without SQL. */

const DAYS = 4;

export interface Made {
  readonly itemHash: string;
  readonly sender: string;
  readonly owner: string;
  readonly chain: string;
  readonly type: string;
  readonly channel: string | null;
  readonly contentType: string | null;
  readonly subject: string | null;
  readonly tags: readonly string[];
  readonly content: Record<string, unknown>;
  /** What its content has beside what its shape is of. */
  readonly more: { readonly ref?: string; readonly payment?: { readonly type: string } };
  readonly time: number;
  /** Whatever it is, it was in force before. */
  readonly status: MessageStatus;
  /** That confirms it. */
  readonly block: number | null;
}

const SENDERS = ['0xa', '0xb', '0xc', '0xd'];
const CHAINS = ['ETH', 'SOL'];
const REFS = ['r', 's'];
const FILES = ['f', 'g'];
const AGGREGATE_KEYS = ['profile', 'settings'];
const PAYMENTS = ['hold', 'credit'];
export const BLOCKS = [5, 10, 20];
const ENDED: readonly MessageStatus[] = ['pending', 'rejected', 'forgotten'];
const CHANNELS = ['x', 'y', 'z'];
export const TYPES = ['POST', 'AGGREGATE', 'STORE', 'FORGET'];
export const CONTENT_TYPES = ['note', 'amend'];
const TAGS = ['t', 'u', 'v'];
const KEYS = ['.a', '.a.b', '.c', '.d'];
export const CONTENTS = [{ a: 1 }, { a: { b: 1 } }, { c: 1, a: 1 }, { d: [1] }];

/** Some values are common and some rare, so that heavy labels meet light ones. */
const skewed = <T>(values: readonly T[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(values[0]!) },
    { weight: 2, arbitrary: fc.constantFrom(...values) },
  );

/** Moments of few days: equal times and the edges of days are common. */
const moment = fc
  .tuple(fc.nat(DAYS - 1), fc.constantFrom(0, 0, 1, 2.5, 40_000, DAY_SECONDS - 1))
  .map(([day, second]) => (19_000 + day) * DAY_SECONDS + second);

const made: fc.Arbitrary<Omit<Made, 'itemHash'>> = fc
  .record({
    sender: skewed(SENDERS),
    owner: fc.option(fc.constantFrom(...SENDERS), { freq: 4 }),
    chain: skewed(CHAINS),
    type: skewed(TYPES),
    channel: fc.option(skewed(CHANNELS), { freq: 5 }),
    contentType: skewed(CONTENT_TYPES),
    ref: fc.option(skewed(REFS), { freq: 2 }),
    file: skewed(FILES),
    key: skewed(AGGREGATE_KEYS),
    payment: fc.option(skewed(PAYMENTS), { freq: 2 }),
    block: fc.option(skewed(BLOCKS), { freq: 1 }),
    tags: fc.array(skewed(TAGS), { maxLength: 3 }),
    content: skewed(CONTENTS),
    time: moment,
    status: fc.oneof(
      { weight: 6, arbitrary: fc.constant<MessageStatus>('processed') },
      { weight: 1, arbitrary: fc.constantFrom(...ENDED) },
    ),
  })
  .map(({ owner: delegate, contentType, ref, file, key, payment, ...one }) => {
    const owner = delegate ?? one.sender;
    const subjects: Readonly<Record<string, string | null>> = {
      POST: ref,
      STORE: file,
      AGGREGATE: aggregateSubject(owner, key),
    };
    const isStore = one.type === 'STORE';
    return {
      ...one,
      owner,
      contentType: one.type === 'POST' ? contentType : null,
      subject: subjects[one.type] ?? null,
      more: {
        ...(isStore && ref !== null ? { ref } : {}),
        ...(isStore && payment !== null ? { payment: { type: payment } } : {}),
      },
    };
  });

/** In the order of arrival; hashes say nothing of it. */
export const world = fc
  .tuple(fc.array(made, { minLength: 1, maxLength: 80 }), fc.integer({ min: 1, max: 40 }))
  .map(([all, batch]) => ({
    batch,
    messages: all.map(
      (one, index): Made => ({ ...one, itemHash: `${(index * 37) % 101}`.padStart(64, '0') }),
    ),
  }));

const some = <T>(values: readonly T[]) =>
  fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 3 });
const HASHES = Array.from({ length: 30 }, (_, index) => `${index}`.padStart(64, '0'));
const has = <T>(values: readonly T[], value: T | null) => value !== null && values.includes(value);
const hasOneOf = (values: readonly string[], own: readonly string[]) =>
  own.some((one) => values.includes(one));

interface Sample<V> {
  readonly values: fc.Arbitrary<V>;
  /** A filter is left out about so many times as often as it is given. */
  readonly out: number;
  readonly fits: (value: V, one: Made) => boolean;
}
export type Samples = {
  readonly [N in PropertyName]: Sample<NonNullable<MessageFilter[N]>>;
};

/** When a message got its status, in milliseconds. */
export const settledOf = (time: number) => Math.floor(time * 1000);

/** What each filter means, said without SQL. */
export const samplesOf = (shapes: ReadonlyMap<string, number>): Samples => ({
  addresses: { values: some([...SENDERS, 'nobody']), out: 2, fits: (v, one) => has(v, one.sender) },
  owners: { values: some(SENDERS), out: 8, fits: (v, one) => has(v, one.owner) },
  types: { values: some(TYPES), out: 2, fits: (v, one) => has(v, one.type) },
  channels: { values: some([...CHANNELS, 'none']), out: 2, fits: (v, one) => has(v, one.channel) },
  chains: { values: some([...CHAINS, 'none']), out: 8, fits: (v, one) => has(v, one.chain) },
  contentTypes: {
    values: some([...CONTENT_TYPES, 'none']),
    out: 3,
    fits: (v, one) => has(v, one.contentType),
  },
  subjects: { values: some([...REFS, ...FILES, 'none']), out: 8, fits: (v, one) => has(v, one.subject) },
  refs: {
    values: some([...REFS, 'none']),
    out: 8,
    fits: (v, one) => has(v, one.type === 'POST' ? one.subject : (one.more.ref ?? null)),
  },
  fileHashes: {
    values: some([...FILES, 'none']),
    out: 8,
    fits: (v, one) => one.type === 'STORE' && has(v, one.subject),
  },
  aggregateKeys: {
    values: some([...AGGREGATE_KEYS, 'none']),
    out: 8,
    fits: (v, one) => one.type === 'AGGREGATE' && has(v, one.subject!.split('\n')[1]!),
  },
  paymentTypes: {
    values: some([...PAYMENTS, 'superfluid']),
    out: 8,
    fits: (v, one) => has(v, one.more.payment?.type ?? null),
  },
  statuses: {
    values: some(['processed', 'removing', ...ENDED]),
    out: 8,
    fits: (v, one) => has(v, one.status),
  },
  fromBlock: {
    values: fc.constantFrom(...BLOCKS),
    out: 12,
    fits: (v, one) => one.block !== null && one.block >= v,
  },
  toBlock: {
    values: fc.constantFrom(...BLOCKS),
    out: 12,
    fits: (v, one) => one.block !== null && one.block < v,
  },
  settledFrom: { values: moment.map(settledOf), out: 12, fits: (v, one) => settledOf(one.time) >= v },
  settledTo: { values: moment.map(settledOf), out: 12, fits: (v, one) => settledOf(one.time) < v },
  tags: { values: some([...TAGS, 'none']), out: 2, fits: (v, one) => hasOneOf(v, one.tags) },
  shapes: {
    values: some([...shapes.values()]),
    out: 8,
    fits: (v, one) => has(v, shapes.get(shapeKeyOf(one))!),
  },
  keys: { values: some([...KEYS, '.none']), out: 2, fits: (v, one) => hasOneOf(v, shapeOf(one.content)) },
  hashes: { values: some(HASHES), out: 8, fits: (v, one) => has(v, one.itemHash) },
  from: { values: moment, out: 3, fits: (v, one) => one.time >= v },
  to: { values: moment, out: 3, fits: (v, one) => one.time < v },
});

/** Every value that there may be of each property alone. */
export const valuesOf = (samples: Samples) =>
  fc.record(mapSamples(samples, ({ values }) => values)) as fc.Arbitrary<MessageFilter>;
export const filtersOf = (samples: Samples) =>
  fc.record(
    mapSamples(samples, ({ values, out }) =>
      fc.oneof({ weight: out, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: values }),
    ),
  ) as fc.Arbitrary<MessageFilter>;
const mapSamples = <T>(samples: Samples, map: (sample: Pick<Sample<unknown>, 'values' | 'out'>) => T) =>
  Object.fromEntries(PROPERTY_NAMES.map((name) => [name, map(samples[name])])) as Record<PropertyName, T>;

const fitsOne = <N extends PropertyName>(samples: Samples, name: N, filter: MessageFilter, one: Made) => {
  const value = filter[name];
  return value === undefined || (samples[name] as Sample<typeof value>).fits(value, one);
};
/** Without a word of statuses, messages in force are meant. */
export const fits = (samples: Samples, filter: MessageFilter, one: Made): boolean =>
  (filter.statuses !== undefined || one.status === 'processed') &&
  PROPERTY_NAMES.every((name) => fitsOne(samples, name, filter, one));

export const NETWORK = 'ethereum';
export const secondsOfBlock = (block: number) => 1_700_000_000 + block;
const confirmedAt = ({ block }: Made) => (block === null ? Number.POSITIVE_INFINITY : secondsOfBlock(block));
export const byConfirmation = (sign: 1 | -1) => (a: Made, b: Made) =>
  confirmedAt(a) === confirmedAt(b) ? byTime(sign)(a, b) : sign * (confirmedAt(a) < confirmedAt(b) ? -1 : 1);

export const byTime = (sign: 1 | -1) => (a: Made, b: Made) =>
  sign * (a.time - b.time) || (a.itemHash < b.itemHash ? -1 : 1);
