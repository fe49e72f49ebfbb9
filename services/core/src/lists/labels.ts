import type { Accepted } from '../messages/accepted.ts';

/**
 * A label is one property that lists filter by, such as "sender 0x12..". The letter keeps the properties apart:
 * s sender, t type, c channel, p content type, g tag, k shape, d day.
 */
export type Property = 's' | 't' | 'c' | 'p' | 'g' | 'k' | 'd';
export const labelOf = (property: Property, value: string | number) => `${property}:${value}`;

export const DAY_SECONDS = 86_400;
export const isDay = (label: string) => label.startsWith('d:');

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
    labelOf('d', Math.floor(message.time / DAY_SECONDS)),
  ];
}

/** Two labels in one order. */
export const pairOf = (x: string, y: string): readonly [string, string] => (x < y ? [x, y] : [y, x]);

/** A message has one value of each property, but any number of tags. */
export const mayPair = (x: string, y: string) => x[0] !== y[0] || (x[0] === 'g' && x !== y);
