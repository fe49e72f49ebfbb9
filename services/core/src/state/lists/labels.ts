import type { CopyValue } from '@skerry/database';
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

const dayOf = (one: Shaped) => Math.floor(ROW.time(one) / DAY_SECONDS);

/** A message's labels, each once. */
function labelsOf(one: Shaped): string[] {
  const labels: string[] = [];
  for (const { letter, column } of LABELLED) {
    const value = ROW[column](one);
    if (Array.isArray(value)) for (const each of new Set(value)) labels.push(labelOf(letter, each));
    else if (value !== null) labels.push(labelOf(letter, value as string | number));
  }
  labels.push(dayLabelOf(dayOf(one)));
  return labels;
}

/** Messages that have the same values of some properties. */
interface Alike {
  readonly byNext: Map<CopyValue, Alike>;
  labels?: readonly string[];
}

function narrow({ byNext }: Alike, value: CopyValue): Alike {
  const known = byNext.get(value);
  if (known) return known;
  const alike: Alike = { byNext: new Map() };
  byNext.set(value, alike);
  return alike;
}

/** A message of more values of one property has labels that no other one is likely to have. */
const ALIKE_VALUES_MAX = 8;
/** Senders last: of these there are most. */
const BY_COMMONNESS = LABELLED.toReversed();

/**
 * Finds the labels of messages, of which thousands that are written together have the same ones: those of equal values are one list, made
 * once.
 */
export function createLabeller(): (one: Shaped) => readonly string[] {
  const all: Alike = { byNext: new Map() };
  return (one) => {
    let alike = narrow(all, dayOf(one));
    for (const { column } of BY_COMMONNESS) {
      const value: CopyValue = ROW[column](one);
      if (typeof value !== 'object' || value === null) alike = narrow(alike, value);
      else if (value.length > ALIKE_VALUES_MAX) return labelsOf(one);
      // How many there are comes first, so that no other row of values is the same.
      else alike = value.reduce<Alike>(narrow, narrow(alike, value.length));
    }
    alike.labels ??= labelsOf(one);
    return alike.labels;
  };
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
export function compareLabels(x: string, y: string): number {
  if (SURROGATE.test(x) || SURROGATE.test(y)) return Buffer.compare(Buffer.from(x), Buffer.from(y));
  if (x === y) return 0;
  return x < y ? -1 : 1;
}

/** Two labels in one order. */
export const pairOf = (x: string, y: string): readonly [string, string] =>
  compareLabels(x, y) < 0 ? [x, y] : [y, x];

/** Two tags are no pair: a message of 64 tags has 2,016 of those. Of all else it has one value of each property. */
export const mayPair = (x: string, y: string) => x[0] !== y[0];
