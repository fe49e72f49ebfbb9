import { inspect, stripVTControlCharacters } from 'node:util';

const GAP = '  ';

const widthOf = (text: string) => stripVTControlCharacters(text).length;

/** What moves a cursor, and what turns the direction of text around, so that it reads as another one than it is. */
const STEERING = String.raw`\p{Cc}\u202a-\u202e\u2066-\u2069`;
const CONTROL = new RegExp(`[${STEERING}]+`, 'gu');

/** What others wrote (names, reasons) must not move the cursor of somebody's terminal. */
export const plainText = (text: string) => text.replace(CONTROL, ' ');

const COLOUR = /(\p{Cc}\[[0-9;]*m)/u;
/** Other control characters begin other things. */
const ESCAPE = '\u001b';
const isCode = (part: string, form: RegExp) =>
  part.startsWith(ESCAPE) && form.test(part.slice(ESCAPE.length));
/** How the command sets off words of its own (`Output.paint`): nothing of it hides others. */
export const STYLES = ['bold', 'green', 'red', 'yellow'] as const;
const CODES = STYLES.flatMap((style) => inspect.colors[style] ?? []);
const OWN = new RegExp(`^\\[(?:${CODES.join('|')})m$`);
const isOwn = (part: string) => isCode(part, OWN);
/** What a console may look like: all but what hides the text behind it. */
const SHOWN =
  /^\[(?:(?:0*(?:[0-79]|2[1-9]|[34][0-79]|9[0-7]|10[0-7])|[34]8;5;\d{1,3}|[34]8;2(?:;\d{1,3}){3})?(?:;|(?=m)))*m$/;
const isShown = (part: string) => isCode(part, SHOWN);
const ENDS = /^\[(?:0*|22|39)m$/;
const END = `${ESCAPE}[0m`;

/** A line in which the colours stay that are allowed. Each ends with its line, whoever forgot it. */
function colouredLine(line: string, isAllowed: ((part: string) => boolean) | undefined): string {
  let isOpen = false;
  const parts = line.split(COLOUR).map((part, index) => {
    if (index % 2 === 0) return plainText(stripVTControlCharacters(part));
    if (!isAllowed?.(part)) return '';
    isOpen = !isCode(part, ENDS);
    return part;
  });
  return `${parts.join('')}${isOpen ? END : ''}`;
}

/** A line of a machine's console: its colours stay where they can be seen, everything else that moves a terminal goes. */
export const consoleLine = (line: string, colours: boolean) =>
  colouredLine(line, colours ? isShown : undefined);

const LINE = /[^\n\t]+/g;

/** The same of many lines. */
export const consoleText = (text: string, colours: boolean) =>
  text.replace(LINE, (line) => consoleLine(line, colours));

/**
 * Text for people, whoever wrote parts of it: lines and tabs stay, and the command's own colours where they can be seen, and nothing
 * else that moves a terminal or hides a part of what is said.
 */
export const terminalText = (text: string, colours: boolean) =>
  text.replace(LINE, (line) => colouredLine(line, colours ? isOwn : undefined));

const HARMFUL = new RegExp(`[${STEERING}]`, 'gu');
const escapeOf = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** JSON for programs, which may be printed on a terminal all the same: the same value, of which nothing steers it. */
export const jsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(HARMFUL, (char) => (char === '\n' ? char : escapeOf(char)));

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
