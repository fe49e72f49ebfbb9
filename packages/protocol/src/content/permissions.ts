import { LIMITS } from '../limits.ts';

/**
 * Delegation (docs/decisions.md 6): an owner's aggregate `security` lists who may sign on the owner's behalf.
 * `authorizations` is one of its fields, so the latest element that has the field counts, as of the message's effective time.
 * Only the owner may write that aggregate: what it permits then never hangs on itself.
 */
export const SECURITY_KEY = 'security';
/** Its field that says who may. */
export const AUTHORIZATIONS = 'authorizations';

/** Owner and key of an aggregate as one text; addresses have no line breaks. */
export const aggregateSubject = (owner: string, key: string) => `${owner}\n${key}`;

/** The key, of a message that is an element of an aggregate. */
export const aggregateKeyOf = (head: { type: string; owner: string; subject: string | null }) =>
  head.type === 'AGGREGATE' && head.subject !== null ? head.subject.slice(head.owner.length + 1) : null;

/** An entry permits what fits every list that it has; an absent or empty list permits everything. */
export interface Authorization {
  readonly address: string;
  readonly chain?: string | undefined;
  readonly channels?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly post_types?: readonly string[] | undefined;
  readonly aggregate_keys?: readonly string[] | undefined;
}

/** When a version of an owner's authorizations counts. */
export interface SecurityDates {
  /** Unix seconds: the owner's word, by which the owner's elements follow each other. */
  readonly time: number;
  /** Unix seconds: since when it counts (protocol's effectiveTime). */
  readonly since: number;
  readonly itemHash: string;
}

/** One version of an owner's authorizations. */
export interface SecurityElement extends SecurityDates {
  readonly authorizations: readonly Authorization[];
}

/** What somebody wants to do on an owner's behalf. */
export interface Act {
  readonly sender: string;
  readonly chain: string;
  readonly channel: string | null;
  readonly type: string;
  /** The type of a POST. */
  readonly contentType: string | null;
  /** The key of an AGGREGATE. */
  readonly aggregateKey: string | null;
}

const isText = (value: unknown): value is string => typeof value === 'string';

const LISTS = [
  'channels',
  'types',
  'post_types',
  'aggregate_keys',
] as const satisfies (keyof Authorization)[];
const FIELDS: readonly string[] = ['address', 'chain', ...LISTS];

type Fields = Readonly<Record<string, unknown>>;

/** What is not understood of an entry. What we do not know may be a restriction, so it never permits more. */
function faultOf(entry: unknown): string | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'must be an object';
  const fields = entry as Fields;
  if (!isText(fields.address)) return 'must have an "address", as text';
  const unknown = Object.keys(fields).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined)
    return `has an unknown field ${JSON.stringify(unknown.slice(0, 64))}; allowed are ${FIELDS.join(', ')}`;
  if (fields.chain != null && !isText(fields.chain)) return 'must have a "chain" that is text';
  const list = LISTS.find((name) => {
    const value = fields[name];
    return value != null && !(Array.isArray(value) && value.every(isText));
  });
  return list && `must have ${JSON.stringify(list)} as a list of texts`;
}

/** Whether an entry of `authorizations`, as anybody may have written it, permits what it says; any other permits nothing. */
export const isAuthorization = (entry: unknown): entry is Authorization => faultOf(entry) === undefined;

/** What of the `authorizations` of a new element of `security` would permit nothing though it looks as if; undefined: nothing does. */
export function whyNotUnderstood(value: unknown): string | undefined {
  if (value === null) return undefined;
  if (!Array.isArray(value)) return `${AUTHORIZATIONS} must be a list; [] permits nobody anything`;
  for (const [at, entry] of value.entries()) {
    const fault = faultOf(entry);
    if (fault !== undefined) return `${AUTHORIZATIONS}[${at}] ${fault}`;
  }
  return undefined;
}

/** Reads `authorizations` as anybody may have written it: entries that are not understood permit nothing. */
export const parseAuthorizations = (value: unknown): Authorization[] =>
  (Array.isArray(value) ? value : []).filter(isAuthorization).map((entry) => ({
    address: entry.address,
    chain: entry.chain ?? undefined,
    ...Object.fromEntries(LISTS.map((name) => [name, entry[name] ?? undefined])),
  }));

const isLater = (one: SecurityDates, other: SecurityDates) =>
  one.time > other.time || (one.time === other.time && one.itemHash > other.itemHash);

/**
 * The element that held at a time: the latest, as the owner dated them, of those that counted by then.
 * @param history in any order
 */
export function securityAt(history: readonly SecurityElement[], time: number): SecurityElement | undefined {
  let latest: SecurityElement | undefined;
  for (const element of history)
    if (element.since <= time && (!latest || isLater(element, latest))) latest = element;
  return latest;
}

/**
 * Of an owner's elements those that `findRefusal` decides by, for acts at these times: each one's element that held then, and all that
 * came within the time in which a revocation defeats it. As few as the acts are, however often the owner changed them. Pure.
 */
export function decisiveFor<Element extends SecurityDates>(
  elements: readonly Element[],
  times: Iterable<number>,
): Element[] {
  const bySince = elements.toSorted((a, b) => a.since - b.since);
  const decisive = new Set<Element>();
  let latest: Element | undefined;
  let [held, followed] = [0, 0];
  for (const time of [...times].toSorted((a, b) => a - b)) {
    for (; held < bySince.length && bySince[held]!.since <= time; held++)
      if (!latest || isLater(bySince[held]!, latest)) latest = bySince[held]!;
    if (latest) decisive.add(latest);
    followed = Math.max(followed, held);
    for (
      ;
      followed < bySince.length && bySince[followed]!.since <= time + LIMITS.revocationSeconds;
      followed++
    )
      decisive.add(bySince[followed]!);
  }
  return [...decisive];
}

/** What was permitted at a time. */
export const authorizationsAt = (
  history: readonly SecurityElement[],
  time: number,
): readonly Authorization[] => securityAt(history, time)?.authorizations ?? [];

const allows = (list: readonly string[] | undefined, value: string | null) =>
  list === undefined || list.length === 0 || (value !== null && list.includes(value));

export function isAuthorized(authorizations: readonly Authorization[], act: Act): boolean {
  return authorizations.some(
    (entry) =>
      entry.address.toLowerCase() === act.sender.toLowerCase() &&
      (entry.chain === undefined || entry.chain === act.chain) &&
      allows(entry.channels, act.channel) &&
      allows(entry.types, act.type) &&
      (act.type !== 'POST' || allows(entry.post_types, act.contentType)) &&
      (act.type !== 'AGGREGATE' || allows(entry.aggregate_keys, act.aggregateKey)),
  );
}

/** What acts have in common with others: of whom they are, and every chain, channel, type, type of a POST and key that they name. */
export interface Acting {
  readonly senders: ReadonlySet<string>;
  readonly values: ReadonlySet<string | null>;
}

/** No text of a message has it. */
const NONE = '\0';

/** It permits these acts as the whole does, and is as short as they are few, however much an owner wrote. */
export function narrowTo(
  authorizations: readonly Authorization[],
  { senders, values }: Acting,
): Authorization[] {
  const addresses = new Set(Array.from(senders, (sender) => sender.toLowerCase()));
  const narrow = (list: readonly string[] | undefined) => {
    if (list === undefined || list.length === 0) return undefined;
    const named = [...new Set(list)].filter((value) => values.has(value)).sort();
    return named.length > 0 ? named : [NONE];
  };
  const narrowed = authorizations.flatMap((entry) => {
    const address = entry.address.toLowerCase();
    if (!addresses.has(address) || !(entry.chain === undefined || values.has(entry.chain))) return [];
    const { chain } = entry;
    const [channels, types] = [narrow(entry.channels), narrow(entry.types)];
    const [post_types, aggregate_keys] = [narrow(entry.post_types), narrow(entry.aggregate_keys)];
    return [{ address, chain, channels, types, post_types, aggregate_keys }];
  });
  return [...new Map(narrowed.map((entry) => [JSON.stringify(entry), entry])).values()];
}

/** Why an act is not permitted: nothing permits it at its time, or what did was revoked so soon that the time may be a lie. */
export type Refusal = { readonly kind: 'unpermitted' } | { readonly kind: 'revoked'; readonly at: number };

/** From when on an element holds, until the next one does. */
interface Turn {
  readonly since: number;
  readonly element: SecurityElement;
}

/** Of histories that were ordered already, and how long they were then: a FORGET asks once for each of a thousand messages. */
const ordered = new WeakMap<
  readonly SecurityElement[],
  { readonly length: number; readonly turns: Turn[] }
>();

/** The elements that ever held, in order. */
function turnsOf(history: readonly SecurityElement[]): readonly Turn[] {
  const known = ordered.get(history);
  if (known?.length === history.length) return known.turns;
  const turns: Turn[] = [];
  let latest: SecurityElement | undefined;
  for (const element of history.toSorted((a, b) => a.since - b.since)) {
    if (latest && !isLater(element, latest)) continue;
    latest = element;
    if (turns.at(-1)?.since === element.since) turns.pop();
    turns.push({ since: element.since, element });
  }
  ordered.set(history, { length: history.length, turns });
  return turns;
}

/**
 * Whether an act holds. A message may be dated back so far without being late, so that a revocation that takes effect
 * within that time after it defeats it: no date brings anything in after a revocation.
 *
 * @param time of the act, Unix seconds (protocol's effectiveTime)
 * @returns undefined where it is permitted
 */
export function findRefusal(
  history: readonly SecurityElement[],
  act: Act,
  time: number,
): Refusal | undefined {
  const turns = turnsOf(history);
  const permits = ({ element }: Turn) => isAuthorized(element.authorizations, act);
  const next = turns.findIndex(({ since }) => since > time);
  const held = turns.at(next === -1 ? -1 : next - 1);
  if (next === 0 || !held || !permits(held)) return { kind: 'unpermitted' };
  if (next === -1) return undefined;
  for (const turn of turns.slice(next)) {
    if (turn.since > time + LIMITS.revocationSeconds) break;
    if (!permits(turn)) return { kind: 'revoked', at: turn.since };
  }
  return undefined;
}
