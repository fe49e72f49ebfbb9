import { styleText } from 'node:util';

/** Fields that are said in another way, or that nobody at a terminal needs. */
const LEFT_OUT = new Set(['level', 'time', 'name', 'msg', 'pid', 'hostname', 'err', 'stack']);
const WARN = 40;
const ERROR = 50;
const DEBUG = 20;
const VALUE_CHARS = 120;
/** The whole is in the log's file. */
const MESSAGE_CHARS = 400;
const FIELDS = 8;
const NAME_WIDTH = 9;

type Style = Parameters<typeof styleText>[0];

interface LogRecord {
  readonly level?: number;
  readonly time?: number;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly code?: string };
  readonly [field: string]: unknown;
}

function parseRecord(line: string): LogRecord | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as LogRecord;
  } catch {
    return undefined;
  }
}

const CONTROL = /\p{Cc}+/gu;

/** A guest's or a stranger's text must not move the cursor of somebody's terminal. */
const plain = (text: string, limit: number) => {
  const clean = text.replace(CONTROL, ' ');
  return clean.length > limit ? `${clean.slice(0, limit)}…` : clean;
};

function textOf(value: unknown): string {
  if (typeof value === 'string')
    return plain(/[\s"]/.test(value) ? JSON.stringify(value) : value, VALUE_CHARS);
  if (Array.isArray(value) && value.every((part) => typeof part !== 'object'))
    return plain(value.join(','), VALUE_CHARS);
  return plain(JSON.stringify(value) ?? String(value), VALUE_CHARS);
}

/** Sentences that say why a daemon failed; of more the last. */
const LAST_WORDS = 2;

/** What a daemon's last lines say of its trouble, as a sentence: warnings, errors, and what is no record of a log. */
export function describeLastWords(lines: readonly string[]): string {
  const words = lines.flatMap((line) => {
    const record = parseRecord(line);
    if (record === undefined) return line.trim() === '' ? [] : [plain(line.trim(), MESSAGE_CHARS)];
    const { level = 30, msg = '', err } = record;
    if (level < WARN) return [];
    return [plain(err?.message ? `${msg}: ${err.message}` : msg, MESSAGE_CHARS)];
  });
  return [...new Set(words)].slice(-LAST_WORDS).join('; ');
}

/** How a command tells a failure: a sentence, perhaps of several lines, and its code. */
const TOLD = 'error: ';
const CODE = / \([A-Z_]+\)$/;

/** Why a daemon ended that could not start, by its last lines: all of what it told as it ended, without the form. */
export function describeFailedStart(lines: readonly string[]): string {
  const at = lines.findLastIndex((line) => line.startsWith(TOLD));
  if (at < 0) return describeLastWords(lines);
  const told = lines.slice(at).filter((line) => parseRecord(line) === undefined && line.trim() !== '');
  return told
    .map((line) => plain(line.trim(), MESSAGE_CHARS).replace(CODE, ''))
    .join('; ')
    .slice(TOLD.length);
}

const clockOf = (timeMs: number) => new Date(timeMs).toTimeString().slice(0, 8);

/**
 * A line of a daemon's log (pino's JSON, or whatever else it printed) as one short line for people.
 * @param colours whether it may be coloured
 */
export function formatLogLine(name: string, line: string, nowMs: number, colours: boolean): string {
  const paint = (style: Style, text: string) =>
    colours ? styleText(style, text, { validateStream: false }) : text;
  const record = parseRecord(line);
  if (record === undefined)
    return `${paint('dim', clockOf(nowMs))} ${paint('cyan', name.padEnd(NAME_WIDTH))} ${plain(line, MESSAGE_CHARS)}`;
  const { level = 30, time = nowMs, msg = '', err } = record;
  const mark = level >= ERROR ? paint('red', 'error: ') : level >= WARN ? paint('yellow', 'warning: ') : '';
  const cause = err?.message
    ? `: ${plain(err.message, MESSAGE_CHARS)}${err.code ? ` (${err.code})` : ''}`
    : '';
  const fields = Object.entries(record)
    .filter(([field, value]) => !LEFT_OUT.has(field) && value !== undefined && value !== null)
    .slice(0, FIELDS)
    .map(([field, value]) => paint('dim', `${field}=${textOf(value)}`));
  const text = [`${plain(msg, MESSAGE_CHARS)}${cause}`, ...fields].join('  ');
  const body = level <= DEBUG ? paint('dim', text) : text;
  return `${paint('dim', clockOf(time))} ${paint('cyan', name.padEnd(NAME_WIDTH))} ${mark}${body}`;
}
