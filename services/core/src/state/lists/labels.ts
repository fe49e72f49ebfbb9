import { ROW, type Shaped } from '../../intake/pipeline/row.ts';
import { LABELLED, type Letter } from './properties.ts';

/**
 * A label is one property that lists filter by, such as "sender 0x12..", or the day of a message. The letter keeps the
 * properties apart. Days come last, so that those of a label lie together.
 */
export const DAY = 'z';
export const labelOf = (letter: Letter | typeof DAY, value: string | number) => `${letter}:${value}`;
/** The letter of a label and its value. */
export const partsOf = (label: string): [letter: string, value: string] => [label[0]!, label.slice(2)];

export const DAY_SECONDS = 86_400;
/** Digits of a day's number, which goes far beyond any time that a message may have. */
const DAY_DIGITS = 6;
const LAST_DAY = 10 ** DAY_DIGITS - 1;
/** @param day days since 1970 */
export const dayLabelOf = (day: number) =>
  labelOf(DAY, String(Math.max(0, Math.min(day, LAST_DAY))).padStart(DAY_DIGITS, '0'));
export const isDay = (label: string) => label.startsWith(`${DAY}:`);

/** A message's labels, each once. */
export function labelsOf(one: Shaped): string[] {
  const labels: string[] = [];
  for (const { letter, column } of LABELLED) {
    const value = ROW[column](one);
    if (Array.isArray(value)) for (const each of new Set(value)) labels.push(labelOf(letter, each));
    else if (value !== null) labels.push(labelOf(letter, value as string | number));
  }
  labels.push(dayLabelOf(Math.floor(ROW.time(one) / DAY_SECONDS)));
  return labels;
}

/** How SQL says a label of a row of `messages`; null where the row has none. */
export interface LabelInSql {
  readonly letter: Letter | typeof DAY;
  readonly label: string;
}

const inSql = (letter: Letter | typeof DAY, value: string) => `'${letter}:' || ${value}`;

/** The labels of which a message has one at most, over its row. */
export const SINGLE_LABELS: readonly LabelInSql[] = [
  ...LABELLED.filter(({ many }) => !many).map(({ letter, column }) => ({
    letter,
    label: inSql(letter, column),
  })),
  {
    letter: DAY,
    label: inSql(DAY, `lpad(floor("time" / ${DAY_SECONDS})::bigint::text, ${DAY_DIGITS}, '0')`),
  },
];

const TAGS = LABELLED.find(({ many }) => many)!.letter;
/** The label of a tag, over its row of `message_tags`. */
export const TAG_LABEL: LabelInSql = { letter: TAGS, label: inSql(TAGS, 'tag') };

const SURROGATE = /[\ud800-\udfff]/;

/** By code points, as the database compares (collation "C"), and not by halves of them. */
const isBefore = (x: string, y: string) =>
  SURROGATE.test(x) || SURROGATE.test(y) ? Buffer.compare(Buffer.from(x), Buffer.from(y)) < 0 : x < y;

/** Two labels in one order. */
export const pairOf = (x: string, y: string): readonly [string, string] => (isBefore(x, y) ? [x, y] : [y, x]);

/** Two tags are no pair: a message of 64 tags has 2,016 of those. Of all else it has one value of each property. */
export const mayPair = (x: string, y: string) => x[0] !== y[0];
