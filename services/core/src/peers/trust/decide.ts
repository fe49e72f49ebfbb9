import { parseEvmAddress } from '@skerry/protocol';
import type { TrustSource } from '../../store/schema.ts';

/** Lists of addresses whose word counts. */
export const TRUST_LISTS = [
  'schedulers',
  'scoring_publishers',
  'credit_publishers',
  'known_core_nodes',
] as const;
export type TrustList = (typeof TRUST_LISTS)[number];

/** All that two core nodes must have in common to answer alike. */
export const TRUST_NAMES = [...TRUST_LISTS, 'credit_enforcement'] as const;
export type TrustName = (typeof TRUST_NAMES)[number];

/** A list of addresses in order; for `credit_enforcement` the one word `yes`, or nothing. */
export type TrustValue = readonly string[];

export interface Held {
  readonly value: TrustValue;
  readonly source: TrustSource;
  /** The peers that told it. */
  readonly toldBy: readonly string[];
}

/** What a peer said of itself. */
export interface Told {
  readonly url: string;
  readonly value: TrustValue;
  readonly source: TrustSource;
}

export const UNSET: Held = { value: [], source: 'unset', toldBy: [] };
const YES = 'yes';

/** Addresses in one list; a peer that tells more is not believed. */
const ADDRESSES_MAX = 100;

export const isSameValue = (a: TrustValue, b: TrustValue) =>
  a.length === b.length && a.every((one, at) => one === b[at]);

export interface TrustFacts {
  /** What the node's own settings say; undefined: nothing. */
  readonly given: TrustValue | undefined;
  readonly held: Held | undefined;
  /** Of the peers that answered. */
  readonly told: readonly Told[];
  /** Whether any peer has answered since this process began. */
  readonly hasHeard?: boolean;
  /** How many peers there are to be asked. */
  readonly peers: number;
  /** Whether it was long enough that those who did not answer need not be waited for. */
  readonly hasWaited: boolean;
  /** Each peer vouches for what it tells, as for its own keys: they need not agree. */
  readonly isUnion?: boolean;
}

export interface TrustVerdict {
  readonly held: Held;
  /** Why a person should look. */
  readonly problem?: string;
  /** Answers of peers are what is missing, which may be starting as this node is. */
  readonly isWaiting?: boolean;
}

/** A list as a person reads it. */
const textOf = ({ url, value }: Told) => `${url} says ${value.length === 0 ? 'nobody' : value.join(', ')}`;

/** Where no peer that answers has an opinion, and not all answer. */
function silenceOf({ told, peers, hasHeard }: TrustFacts): string {
  if (told.length > 0) return `only ${told.length} of ${peers} peers answer, none of which knows it`;
  return hasHeard ? 'no peer answers any more' : 'no peer has answered yet';
}

/**
 * What counts. A setting always does. Without one a node believes what its peers do, where all that answer and have an
 * opinion agree: what they say of where they have it from makes no difference, since a liar would say the best. The first
 * list takes answers of most peers, or a while. What was once learned changes only when every peer tells the same other
 * thing. Pure.
 */
export function decideTrust(facts: TrustFacts): TrustVerdict {
  const { given, held, told, peers, hasWaited, isUnion } = facts;
  if (given) return { held: { value: given, source: 'setting', toldBy: [] } };
  if (peers === 0) return { held: UNSET };
  const kept = held?.source === 'peers' ? held : UNSET;
  const known = told.filter(({ source }) => source !== 'unset');
  const [first] = known;
  if (!first)
    return told.length < peers && kept === UNSET
      ? { held: kept, problem: `it is not set, and ${silenceOf(facts)}`, isWaiting: true }
      : { held: kept };
  const toldBy = known.map(({ url }) => url);
  if (isUnion) {
    const value = orderedAddresses([
      ...known.flatMap((one) => one.value),
      ...(told.length < peers ? kept.value : []),
    ]);
    return { held: { value, source: 'peers', toldBy } };
  }
  if (known.some(({ value }) => !isSameValue(value, first.value)))
    return { held: kept, problem: `it is not set, and peers differ: ${known.map(textOf).join('; ')}` };
  if (kept === UNSET && told.length * 2 <= peers && !hasWaited)
    return {
      held: kept,
      problem: `it is not set, and only ${told.length} of ${peers} peers have answered so far`,
      isWaiting: true,
    };
  const isOther = kept !== UNSET && !isSameValue(kept.value, first.value);
  if (isOther && told.length < peers)
    return { held: kept, problem: `${first.url} has a different list, and not every peer answers` };
  return { held: { value: first.value, source: 'peers', toldBy } };
}

/** As a node tells it: lists of addresses, and whether credit is enforced. */
export type TrustView = {
  readonly [K in TrustList]: { readonly value: TrustValue; readonly source: TrustSource };
} & { readonly credit_enforcement: { readonly value: boolean; readonly source: TrustSource } };

export function viewOfTrust(held: (name: TrustName) => Held): TrustView {
  const lists = TRUST_LISTS.map((name) => [name, { value: held(name).value, source: held(name).source }]);
  const { value, source } = held('credit_enforcement');
  return {
    ...Object.fromEntries(lists),
    credit_enforcement: { value: value.includes(YES), source },
  } as TrustView;
}

export const enforcementOf = (isOn: boolean): TrustValue => (isOn ? [YES] : []);

const SOURCES: readonly unknown[] = ['setting', 'peers', 'unset'] satisfies TrustSource[];

/** One member of what a peer says of itself; undefined for what has not its form. */
export function readTold(url: string, name: TrustName, said: unknown): Told | undefined {
  const { value, source } = (said ?? {}) as { value?: unknown; source?: unknown };
  if (!SOURCES.includes(source)) return undefined;
  const known = source as TrustSource;
  if (name === 'credit_enforcement')
    return typeof value === 'boolean' ? { url, value: enforcementOf(value), source: known } : undefined;
  if (!Array.isArray(value) || value.length > ADDRESSES_MAX) return undefined;
  try {
    return { url, value: orderedAddresses(value.map((one) => parseEvmAddress(String(one)))), source: known };
  } catch {
    return undefined;
  }
}

/** Each once, in order: the same list is the same text. */
export const orderedAddresses = (addresses: Iterable<string>): TrustValue => [...new Set(addresses)].sort();
