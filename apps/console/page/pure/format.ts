import { grouped, showDecimal } from '@skerry/protocol/credit/shown';

/** Numbers, times and strangers' text, as people read them. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

const plural = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`;

/** `3 minutes`; the largest unit that fits, rounded down. @param ms not negative */
export function duration(ms: number): string {
  if (ms < MINUTE_MS) return plural(Math.floor(ms / SECOND_MS), 'second');
  if (ms < HOUR_MS) return plural(Math.floor(ms / MINUTE_MS), 'minute');
  if (ms < 2 * DAY_MS) return plural(Math.floor(ms / HOUR_MS), 'hour');
  if (ms < 2 * YEAR_MS) return plural(Math.floor(ms / DAY_MS), 'day');
  return plural(Math.floor(ms / YEAR_MS), 'year');
}

/** `3 minutes ago`, `now`, `in 2 hours`. */
export function relative(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  if (Math.abs(ms) < 2 * SECOND_MS) return 'now';
  return ms > 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

const pad = (value: number) => String(value).padStart(2, '0');

/** `2026-01-02 03:04:05`, of the reader's zone or of UTC, which is then said. */
export function clock(atMs: number, zone: 'local' | 'utc'): string {
  const date = new Date(atMs);
  if (Number.isNaN(date.getTime())) return 'no date';
  if (zone === 'utc') return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  const day = [date.getFullYear(), pad(date.getMonth() + 1), pad(date.getDate())].join('-');
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(pad).join(':')}`;
}

/** `c41f2a…9b0c` */
export const short = (hash: string, head = 8, tail = 4) =>
  hash.length <= head + tail + 1 ? hash : `${hash.slice(0, head)}…${hash.slice(-tail)}`;

/** `12,345`. */
export const count = (value: number | bigint) =>
  grouped(typeof value === 'bigint' ? value : String(Math.round(value)));

/** How many decimals of a unit wei are, the smallest first; a chain calls its own coin what it likes. */
const COIN_UNITS = [
  ['wei', 0],
  ['gwei', 9],
  ['coins', 18],
] as const;
/** From a thousandth of a unit on, it is said in that unit. */
const UNIT_DECIMALS = 3;

/** Wei, exact, in a unit that people can read: `15 wei`, `1.5 gwei`, `0.25 coins`. Anything else as it is. */
export function coins(text: string): string {
  if (!/^[0-9]{1,78}$/.test(text)) return text;
  const wei = BigInt(text);
  const [unit, places] =
    COIN_UNITS.findLast(([, decimals]) => wei >= 10n ** BigInt(Math.max(0, decimals - UNIT_DECIMALS))) ??
    COIN_UNITS[0];
  return `${showDecimal(wei, places)} ${unit}`;
}

/** `0.482`; what was not measured is a dash. */
export const score = (value: number | null | undefined) =>
  value === null || value === undefined ? '–' : value.toFixed(3);

/** Seconds as `12 ms` or `1.20 s`. */
export function latency(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '–';
  return seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : `${seconds.toFixed(2)} s`;
}

export const cores = (count: number) => plural(count, 'core');

const BINARY = ['MiB', 'GiB', 'TiB', 'PiB'];
/** `512 MiB`, `7.5 GiB`. */
export function mebibytes(value: number): string {
  let [size, unit] = [value, 0];
  while (size >= 1_024 && unit < BINARY.length - 1) {
    size /= 1_024;
    unit++;
  }
  return `${Number.isInteger(size) || size >= 100 ? Math.round(size) : size.toFixed(1)} ${BINARY[unit]}`;
}

const SIZES = ['bytes', 'kB', 'MB', 'GB', 'TB'];
/** `12 bytes`, `1.5 MB`: of a thousand each. */
export function bytes(value: number): string {
  let [size, unit] = [value, 0];
  while (size >= 1_000 && unit < SIZES.length - 1) {
    size /= 1_000;
    unit++;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${SIZES[unit]}`;
}

/** Characters that hide, reorder or imitate: controls, formats, separators of lines. */
const TRICKS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

export interface TextPiece {
  readonly text: string;
  /** Whether it stands for a character that must not act: `U+202E`. */
  readonly isTrick: boolean;
}

/**
 * A stranger's text in pieces that cannot reorder or hide each other.
 * @param limit in characters, the rest is cut
 * @param keepsLines whether line feeds may act
 */
export function pieces(text: string, limit = 200, keepsLines = false): readonly TextPiece[] {
  const made: TextPiece[] = [];
  let plain = '';
  const flush = () => {
    if (plain !== '') made.push({ text: plain, isTrick: false });
    plain = '';
  };
  const characters = [...text];
  for (const character of characters.slice(0, limit)) {
    if (!TRICKS.test(character) || (keepsLines && character === '\n')) {
      plain += character;
      continue;
    }
    flush();
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    made.push({ text: `U+${code}`, isTrick: true });
  }
  flush();
  if (characters.length > limit) made.push({ text: '…', isTrick: false });
  return made;
}
