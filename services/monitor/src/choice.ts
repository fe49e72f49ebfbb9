import { createHmac } from 'node:crypto';
import { ownerOfUrl } from '@skerry/kit';
import type { HourEntry } from './hour-store.ts';
import type { MeasuredNode } from './node-list.ts';
import type { HourWindow } from './plan.ts';
import { type PublishedRecord, VISIT_MS_MAX } from './probe/measure.ts';

/** When each node that announced itself answered last: the beginning of that hour, by `KIND:ID`. */
export type Answered = ReadonlyMap<string, number>;

export const keyOf = (kind: MeasuredNode['kind'], nodeId: string) => `${kind}:${nodeId}`;

/** Announcing costs nothing: those that have not answered yet get this part of the hour. */
const NEWCOMERS_PART = 0.25;
/** Of each hour, however short it is. */
const NEWCOMERS_MIN = 100;
/** Hours for which a node that fell silent is still visited in each. */
const REMEMBERED_HOURS = 24;

/** How many newcomers an hour has time for where each takes as long as it may. */
export const newcomersMax = ({ startMs, lastVisitMs }: HourWindow, concurrency: number): number =>
  Math.max(
    NEWCOMERS_MIN,
    Math.floor((NEWCOMERS_PART * concurrency * (lastVisitMs - startMs)) / VISIT_MS_MAX),
  );

export interface ChoiceOptions {
  readonly answered: Answered;
  readonly seed: string;
  readonly window: HourWindow;
  readonly concurrency: number;
}

/** Whoever announces thousands of nodes is few owners. */
export const ownerOf = ({ url }: MeasuredNode): string => ownerOfUrl(url);

/**
 * Whose turn an hour is. Owners have equal shares of it, and each one's nodes take turns in theirs: a flood from one place keeps a newcomer
 * from elsewhere waiting no longer than a single node would. What owners leave of their shares, others get. While the list stays the same, each
 * node has a turn before any other of its owner has a second one. Pure.
 * @param owners the nodes of each, in the order of their turns
 * @param count nodes that the hour has time for
 */
export function takeTurns<T>(owners: readonly (readonly T[])[], count: number, hour: number): T[] {
  if (owners.length >= count)
    return Array.from({ length: count }, (_, index) => {
      const turn = hour * count + index;
      const nodes = owners[turn % owners.length]!;
      return nodes[Math.floor(turn / owners.length) % nodes.length]!;
    });
  let left = count;
  return owners
    .toSorted((a, b) => a.length - b.length)
    .flatMap((nodes, index) => {
      const share = Math.min(nodes.length, Math.floor(left / (owners.length - index)));
      left -= share;
      const first = (hour * share) % nodes.length;
      return [...nodes.slice(first), ...nodes.slice(0, first)].slice(0, share);
    });
}

/**
 * Whom to measure in an hour: all that are listed, all that answered lately, and of those that only announced themselves as
 * many as there is time for, hour by hour the next ones. Follows from its arguments; nobody can foretell or choose a turn.
 */
export function chooseNodes(nodes: readonly MeasuredNode[], options: ChoiceOptions): MeasuredNode[] {
  const { answered, seed, window, concurrency } = options;
  const isNewcomer = ({ kind, nodeId, address, isListed }: MeasuredNode) =>
    address !== undefined && !isListed && !answered.has(keyOf(kind, nodeId));
  const turnOf = ({ kind, nodeId }: MeasuredNode) =>
    createHmac('sha256', seed).update(`turn\n${kind}\n${nodeId}`).digest('hex');
  const newcomers = nodes
    .filter(isNewcomer)
    .map((node) => ({ node, turn: turnOf(node) }))
    .sort((a, b) => (a.turn < b.turn ? -1 : 1))
    .map(({ node }) => node);
  const hour = Math.floor(window.startMs / (window.endMs - window.startMs));
  const owners = [...Map.groupBy(newcomers, ownerOf).values()];
  const chosen = takeTurns(owners, Math.min(newcomers.length, newcomersMax(window, concurrency)), hour);
  return [...nodes.filter((node) => !isNewcomer(node)), ...chosen];
}

const hasAnswered = (record: PublishedRecord) =>
  record.base_latency !== undefined || record.base_latency_ipv4 !== undefined;

/** What is known after an hour. Told twice it is the same. What a clock that was ahead dated later counts as of this hour. */
export function noteAnswers(
  answered: Answered,
  entries: readonly HourEntry[],
  startMs: number,
  hourMs: number,
): Map<string, number> {
  const oldest = startMs - REMEMBERED_HOURS * hourMs;
  const after = new Map<string, number>();
  for (const [key, hour] of answered) if (hour >= oldest) after.set(key, Math.min(hour, startMs));
  for (const { kind, record } of entries)
    if (hasAnswered(record)) after.set(keyOf(kind, record.node_id), startMs);
  return after;
}
