import type { Accepted } from '../messages/accepted.ts';

/**
 * A label is one property that lists filter by, such as "sender 0x12..". The letter keeps the properties apart:
 * s sender, t type, c channel, p content type, g tag, k shape, z day. Days come last, so that those of a label lie together.
 */
export type Property = 's' | 't' | 'c' | 'p' | 'g' | 'k' | 'z';
export const labelOf = (property: Property, value: string | number) => `${property}:${value}`;

export const DAY_SECONDS = 86_400;
/** Digits of a day's number, which goes far beyond any time that a message may have. */
export const DAY_DIGITS = 6;
const LAST_DAY = 10 ** DAY_DIGITS - 1;
/** @param day days since 1970 */
export const dayLabelOf = (day: number) =>
  labelOf('z', String(Math.max(0, Math.min(day, LAST_DAY))).padStart(DAY_DIGITS, '0'));
export const isDay = (label: string) => label.startsWith('z:');

/** A message's labels, each once. */
export function labelsOf(
  { message, contentType, tags }: Pick<Accepted, 'message' | 'contentType' | 'tags'>,
  shape: number | null,
): string[] {
  return [
    labelOf('s', message.sender),
    labelOf('t', message.type),
    ...(message.channel === null ? [] : [labelOf('c', message.channel)]),
    ...(contentType === null ? [] : [labelOf('p', contentType)]),
    ...[...new Set(tags)].map((tag) => labelOf('g', tag)),
    ...(shape === null ? [] : [labelOf('k', shape)]),
    dayLabelOf(Math.floor(message.time / DAY_SECONDS)),
  ];
}

/** Two labels in one order. */
export const pairOf = (x: string, y: string): readonly [string, string] => (x < y ? [x, y] : [y, x]);

/** A message has one value of each property, but any number of tags. */
export const mayPair = (x: string, y: string) => x[0] !== y[0] || (x[0] === 'g' && x !== y);
