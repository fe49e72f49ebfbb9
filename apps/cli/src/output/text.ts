import { stripVTControlCharacters } from 'node:util';

const GAP = '  ';

const widthOf = (text: string) => stripVTControlCharacters(text).length;

const CONTROL = /\p{Cc}+/gu;

/** What others wrote (names, reasons) must not move the cursor of somebody's terminal. */
export const plainText = (text: string) => text.replace(CONTROL, ' ');

const COLOUR = /(\p{Cc}\[[0-9;]*m)/u;
/** Other control characters begin other things. */
const ESCAPE = '\u001b';

/** A line of a machine's console: its colours stay where they can be seen, everything else that moves a terminal goes. */
export const consoleLine = (line: string, colours: boolean) =>
  line
    .split(COLOUR)
    .map((part, index) =>
      index % 2 === 1
        ? colours && part.startsWith(ESCAPE)
          ? part
          : ''
        : plainText(stripVTControlCharacters(part)),
    )
    .join('');

/**
 * Text for people, whoever wrote parts of it: lines and tabs stay, and colours where they can be seen, and nothing else that moves
 * a terminal.
 */
export const terminalText = (text: string, colours: boolean) =>
  text.replace(/[^\n\t]+/g, (part) => consoleLine(part, colours));

/** At most so many characters, for people; programs get the whole. */
export const shorten = (text: string, chars: number) =>
  text.length <= chars ? text : `${text.slice(0, chars - 1)}…`;

/** Columns aligned to the left, without trailing spaces. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? ''))),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat(widths[column]! - widthOf(cell)))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Text of at least so many characters can be shortened where a table is too wide. */
const SENTENCE_CHARS_MIN = 16;
/** Hashes, addresses and names are for copying, so that only sentences are ever cut. */
const isSentence = (cell: string) => cell.length > SENTENCE_CHARS_MIN && /\S \S+ \S/.test(cell);

/** What the sentences of the last column must lose, so that the lines fit. */
function shortenSentences(
  rows: readonly (readonly string[])[],
  excess: number,
): readonly (readonly string[])[] {
  const last = Math.max(0, ...rows.map((row) => row.length)) - 1;
  const widest = Math.max(0, ...rows.map((row) => widthOf(row[last] ?? '')));
  const room = Math.max(SENTENCE_CHARS_MIN, widest - excess);
  return rows.map((row) =>
    row.map((cell, column) => (column === last && isSentence(cell) ? shorten(cell, room) : cell)),
  );
}

const widthOfLines = (text: string) => Math.max(0, ...text.split('\n').map(widthOf));

/**
 * An empty table is an empty text. One that is wider than the terminal has shorter sentences; where that is not enough, each
 * row becomes lines of their own, so that nothing that one wants to copy is cut or broken.
 */
export function renderTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): string {
  if (rows.length === 0) return '';
  const table = alignColumns([head, ...rows]);
  const excess = widthOfLines(table) - width;
  if (excess <= 0) return table;
  const shorter = alignColumns([head, ...shortenSentences(rows, excess)]);
  if (widthOfLines(shorter) <= width) return shorter;
  return rows
    .map((row) => alignColumns(head.flatMap((name, column) => (row[column] ? [[name, row[column]]] : []))))
    .join('\n\n');
}

/** `key: value` lines; what is undefined is left out. */
export function renderFields(fields: readonly (readonly [string, string | number | undefined])[]): string {
  return fields
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}`.trimEnd())
    .join('\n');
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** How long ago, roughly: `5 minutes ago`. */
export function renderAge(seconds: number): string {
  for (const [unit, size] of UNITS) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return `${count} ${unit}${count === 1 ? '' : 's'} ago`;
  }
  return 'just now';
}

/** Milliseconds as `12 s`, `3 min` or `3 min 20 s`. */
export function renderDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
  return minutes === 0 ? `${rest} s` : `${minutes} min${rest === 0 ? '' : ` ${rest} s`}`;
}

export const renderFiles = (count: number) => `${count} file${count === 1 ? '' : 's'}`;

const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function renderBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(SIZE_UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${SIZE_UNITS[power]}`;
}

/** Unix seconds as `2026-11-21 11:04:05` in the time of the person's machine. */
export function renderTime(unixSeconds: number): string {
  const at = new Date(unixSeconds * 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
