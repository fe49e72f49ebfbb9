import { fieldsOf, type MessageEventData } from '@skerry/protocol';
import { PROGRAM_LIMITS } from '../limits.ts';

/** What a program asks of the messages that it is called with: each field of a message that it names must be what it says. */
export type MessageFilter = Readonly<Record<string, unknown>>;

/** The filters of a message that mean something: without any field one fits nothing, as on deployed nodes. */
export const readFilters = (filters: readonly unknown[]): readonly MessageFilter[] =>
  filters
    .slice(0, PROGRAM_LIMITS.messageFilters)
    .map(fieldsOf)
    .filter((filter) => Object.keys(filter).length > 0);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Deeper than contents of messages can be is nothing. */
const DEPTH_MAX = 16;

/** The same, or an object that has all of it. */
function includes(value: unknown, asked: unknown, depth = 0): boolean {
  if (!isObject(asked)) return value === asked;
  if (depth > DEPTH_MAX || !isObject(value)) return false;
  return Object.entries(asked).every(
    ([name, inner]) => Object.hasOwn(value, name) && includes(value[name], inner, depth + 1),
  );
}

const isSameAddress = (one: unknown, other: unknown) =>
  typeof one === 'string' && typeof other === 'string' && one.toLowerCase() === other.toLowerCase();

/** Whether a message, in the form of deployed nodes, fits one of the filters. Pure. */
export const fits = (
  message: Readonly<Record<string, unknown>>,
  filters: readonly MessageFilter[],
): boolean =>
  filters.some(({ sender, ...others }) => {
    if (sender !== undefined && sender !== null && !isSameAddress(message.sender, sender)) return false;
    return Object.entries(others).every(([name, asked]) => asked === null || includes(message[name], asked));
  });

/**
 * Whether a message may fit, by what its event says of it: the others are not read. Pure.
 */
export function mayFit(event: MessageEventData, filters: readonly MessageFilter[]): boolean {
  const { item_hash, type, sender, channel, content_type } = event;
  const says = (asked: unknown, value: unknown) => asked === undefined || asked === null || asked === value;
  return filters.some(
    (filter) =>
      (filter.sender === undefined || filter.sender === null || isSameAddress(sender, filter.sender)) &&
      says(filter.item_hash, item_hash) &&
      says(filter.type, type) &&
      says(filter.channel, channel) &&
      (type !== 'POST' || says(fieldsOf(filter.content).type, content_type)),
  );
}
