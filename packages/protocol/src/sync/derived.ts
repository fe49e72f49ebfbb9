import { parseAggregateContent } from '../content/aggregate.ts';
import { ownerOf } from '../content/on-behalf.ts';
import { AMEND, parsePostContent } from '../content/post.ts';
import { parseStoreContent } from '../content/store.ts';
import { CREDIT_POST, parseDistribution, parseExpense } from '../credit/content.ts';
import {
  countedEntries,
  expensesOf,
  type LedgerEntry,
  purchasesOf,
  type StampedEntry,
} from '../credit/ledger.ts';
import type { VerifiedMessage } from '../envelope.ts';
import { canonicalJson } from '../json/canonical.ts';
import { METRICS_POST_TYPES, SCORING_CHANNEL } from '../measurement/report.ts';
import { convertNetworkContent } from '../network-form/convert.ts';
import { type SetDigest, SetSum } from './set-digest.ts';

/**
 * Digests of derived state (docs/api.md): what follows from the messages in force, by kind. Each element is a list of texts in
 * canonical JSON that names messages, whose contents their hashes cover. Whoever has the messages computes the same.
 */
export const DERIVED_KINDS = ['posts', 'aggregates', 'credits', 'files', 'measurements', 'programs'] as const;
export type DerivedKind = (typeof DERIVED_KINDS)[number];
export type DerivedDigests = Readonly<Record<DerivedKind, SetDigest>>;

/** Whose messages count, as addresses. */
export interface DerivedTrust {
  readonly creditPublishers: ReadonlySet<string>;
  readonly scoringPublishers: ReadonlySet<string>;
}

type Stamp = Pick<VerifiedMessage, 'itemHash' | 'time'>;
type Told = Stamp & Pick<VerifiedMessage, 'form' | 'sender' | 'type' | 'channel' | 'content'>;

/** What one message says. */
type DerivedFact =
  | { readonly kind: 'element'; readonly of: DerivedKind; readonly texts: readonly string[] }
  | { readonly kind: 'post'; readonly original: string }
  | ({ readonly kind: 'amend'; readonly original: string } & Stamp)
  | ({ readonly kind: 'field'; readonly place: readonly [owner: string, key: string, field: string] } & Stamp)
  | { readonly kind: 'entry'; readonly entry: StampedEntry };

function entriesOf(type: string, content: unknown): readonly LedgerEntry[] {
  if (type === CREDIT_POST.distribution) return purchasesOf(parseDistribution(content));
  if (type === CREDIT_POST.expense) return expensesOf(parseExpense(content));
  return [];
}

const isMetrics = (type: string, channel: string | null) =>
  channel === SCORING_CHANNEL && METRICS_POST_TYPES.some((one) => one === type);

function factsOfPost(
  { itemHash, sender, time, channel }: Told,
  content: unknown,
  trust: DerivedTrust,
): DerivedFact[] {
  const post = parsePostContent(content);
  const owner = ownerOf(sender, post);
  if (post.type === AMEND) return [{ kind: 'amend', original: post.ref ?? '', itemHash, time }];
  const entries = trust.creditPublishers.has(owner) ? entriesOf(post.type, post.content) : [];
  const isMeasured = trust.scoringPublishers.has(owner) && isMetrics(post.type, channel);
  return [
    { kind: 'post', original: itemHash },
    ...entries.map((entry) => ({ kind: 'entry' as const, entry: { ...entry, itemHash, time } })),
    ...(isMeasured
      ? [{ kind: 'element' as const, of: 'measurements' as const, texts: [itemHash, owner] }]
      : []),
  ];
}

/** What a message in force says of derived state. Throws AppError for a content that has no effect on any core node. */
export function derivedFactsOf(message: Told, trust: DerivedTrust): readonly DerivedFact[] {
  const { form, itemHash, sender, time } = message;
  const { type, content } =
    form === 'network' ? convertNetworkContent(message.type, itemHash, message.content) : message;
  switch (type) {
    case 'POST':
      return factsOfPost(message, content, trust);
    case 'AGGREGATE': {
      const { key, address, content: fields } = parseAggregateContent(content);
      const owner = ownerOf(sender, { address });
      return Object.keys(fields).map((field) => ({
        kind: 'field',
        place: [owner, key, field],
        ...{ itemHash, time },
      }));
    }
    case 'STORE': {
      const store = parseStoreContent(content);
      return [{ kind: 'element', of: 'files', texts: [store.item_hash, itemHash, ownerOf(sender, store)] }];
    }
    case 'PROGRAM':
      return [{ kind: 'element', of: 'programs', texts: [itemHash, ownerOf(sender, message.content ?? {})] }];
    default:
      return [];
  }
}

const isLater = (one: Stamp, other: Stamp) =>
  one.time === other.time ? one.itemHash > other.itemHash : one.time > other.time;

/** Of several with one key the latest by (time, item hash). */
function latestBy<T extends Stamp>(all: readonly T[], keyOf: (one: T) => string): Map<string, T> {
  const latest = new Map<string, T>();
  for (const one of all) {
    const before = latest.get(keyOf(one));
    if (!before || isLater(one, before)) latest.set(keyOf(one), one);
  }
  return latest;
}

const textsOfEntry = ({ itemHash, place, owner, nano }: StampedEntry) => [
  itemHash,
  String(place),
  owner,
  String(nano),
];

/** The elements of every kind, in no order. @param facts of all messages in force */
function* listElements(facts: readonly DerivedFact[]): Generator<readonly [DerivedKind, readonly string[]]> {
  const amends = latestBy(
    facts.filter((one) => one.kind === 'amend'),
    ({ original }) => original,
  );
  const fields = latestBy(
    facts.filter((one) => one.kind === 'field'),
    ({ place }) => canonicalJson(place),
  );
  const entries = facts.flatMap((one) => (one.kind === 'entry' ? [one.entry] : []));
  for (const fact of facts) {
    if (fact.kind === 'element') yield [fact.of, fact.texts];
    if (fact.kind === 'post')
      yield ['posts', [fact.original, amends.get(fact.original)?.itemHash ?? fact.original]];
  }
  for (const { place, itemHash } of fields.values()) yield ['aggregates', [...place, itemHash]];
  for (const entry of countedEntries(entries).values()) yield ['credits', textsOfEntry(entry)];
}

/** The digests that follow from what all messages in force say. */
export function derivedDigestsOf(facts: readonly DerivedFact[]): DerivedDigests {
  const sums = new Map(DERIVED_KINDS.map((kind) => [kind, new SetSum()]));
  for (const [kind, texts] of listElements(facts)) sums.get(kind)!.add(canonicalJson(texts));
  const digestOf = (kind: DerivedKind) => sums.get(kind)!.digest();
  return {
    posts: digestOf('posts'),
    aggregates: digestOf('aggregates'),
    credits: digestOf('credits'),
    files: digestOf('files'),
    measurements: digestOf('measurements'),
    programs: digestOf('programs'),
  };
}
