import { ASKED_SECONDS_MAX } from '@skerry/protocol/api/core/common/dates';
import { type Firewall, MIB_PER_GIB } from '@skerry/protocol/forms';
import { InvalidArgumentError } from 'commander';
import { isMilliseconds, readIsoDate } from './moments.ts';
import { isServiceUrl } from './networks/service-url.ts';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly core?: string;
  readonly network?: string;
  readonly gateway?: string;
  readonly key?: string;
  readonly json?: boolean;
}

/** Of every command that asks first. */
export const YES_OPTION = ['-y, --yes', 'do not ask for confirmation'] as const;

const PORT_MAX = 65535;

/** Readers of option values: each throws commander's own error, so that a wrong value is wrong use (exit code 2). */

export function parseWhole(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

export function parsePositive(text: string): number {
  const value = parseWhole(text);
  if (value === 0) throw new InvalidArgumentError('Expected a number of at least 1.');
  return value;
}

/** `512`, `512M`, `512MiB`, `2G` -> MiB */
export function parseMemoryMib(text: string): number {
  const [, digits, unit] = /^([0-9]{1,9})(?:([MG])(?:i?B)?)?$/i.exec(text) ?? [];
  if (digits === undefined)
    throw new InvalidArgumentError('Expected whole MiB, or a unit such as 512M or 2G.');
  return Number(digits) * (unit?.toUpperCase() === 'G' ? MIB_PER_GIB : 1);
}

/** `4`, `4G`, `4GiB`, `1T` -> GiB */
export function parseDiskGib(text: string): number {
  const [, digits, unit] = /^([0-9]{1,9})(?:([GT])(?:i?B)?)?$/i.exec(text) ?? [];
  if (digits === undefined) throw new InvalidArgumentError('Expected whole GiB, or a unit such as 4G or 1T.');
  return Number(digits) * (unit?.toUpperCase() === 'T' ? 1024 : 1);
}

/** Ports that anyone may reach, as an instance's firewall has them. */
export type Ports = Pick<Firewall, 'allowedPorts' | 'allowedUdpPorts'>;

const UDP = 'udp:';

/** `22,80,443,udp:443` -> each once, in rising order; `none` or an empty text -> no port */
export function parsePorts(text: string): Ports {
  const parts = text === '' || text === 'none' ? [] : text.split(',').map((part) => part.trim());
  const [tcp, udp] = [
    parts.filter((part) => !part.startsWith(UDP)),
    parts.filter((part) => part.startsWith(UDP)),
  ];
  const udpPorts = udp.map((part) => part.slice(UDP.length));
  return {
    allowedPorts: rising(tcp),
    ...(udp.length === 0 ? {} : { allowedUdpPorts: rising(udpPorts) }),
  };
}

function rising(texts: readonly string[]): number[] {
  const ports = texts.map((digits) => {
    const port = Number(digits);
    if (!/^[0-9]{1,5}$/.test(digits) || port < 1 || port > PORT_MAX)
      throw new InvalidArgumentError(
        'Expected ports from 1 to 65535, such as 22,80,443 or, by UDP, udp:443; or "none".',
      );
    return port;
  });
  return [...new Set(ports)].sort((a, b) => a - b);
}

/** The text that {@link parsePorts} reads. */
export function renderPorts({ allowedPorts, allowedUdpPorts = [] }: Ports): string {
  return [...allowedPorts, ...allowedUdpPorts.map((port) => `${UDP}${port}`)].join(',') || 'none';
}

export function parseListenPort(text: string): number {
  const port = parseWhole(text);
  if (port > PORT_MAX)
    throw new InvalidArgumentError('Expected a port from 0 to 65535; 0 lets the system choose.');
  return port;
}

/** `90`, `90s`, `15m`, `1h` -> milliseconds */
export function parseDurationMs(text: string): number {
  const [, digits, unit = 's'] = /^([0-9]{1,7})([smh])?$/.exec(text) ?? [];
  if (digits === undefined || Number(digits) === 0)
    throw new InvalidArgumentError('Expected seconds, or a unit such as 90s, 15m or 1h.');
  return Number(digits) * { s: 1_000, m: 60_000, h: 3_600_000 }[unit as 's' | 'm' | 'h'];
}

/** Of a timer: what is longer would be over at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const HOUR_MS = 3_600_000;

/** The same for what a timer waits for. */
export function parseWaitMs(text: string): number {
  const durationMs = parseDurationMs(text);
  if (durationMs > TIMER_MS_MAX)
    throw new InvalidArgumentError(`Expected at most ${Math.floor(TIMER_MS_MAX / HOUR_MS)}h.`);
  return durationMs;
}

const DAY_MS = 24 * HOUR_MS;

/** Of how long ago; NaN where the text does not say it. Without a unit, four digits are a year to who writes them, and eight are a day. */
function readAgoMs(text: string): number {
  const [, days] = /^([0-9]{1,5})d$/.exec(text) ?? [];
  if (days !== undefined) return Number(days) * DAY_MS;
  return /^(?:[0-9]{1,3}|[0-9]{1,7}[smh])$/.test(text) ? parseDurationMs(text) : Number.NaN;
}

/**
 * `15m`, `2h`, `3d` ago, a day or a time such as `2026-11-30T08:00`, of this computer's zone unless it says another, or Unix seconds ->
 * Unix seconds, as the API has them
 */
export function parseTimeSeconds(text: string): number {
  if (isMilliseconds(text)) throw new InvalidArgumentError('Expected Unix seconds, not milliseconds.');
  // As the time of a message is written, to the last digit: what begins there has the message.
  if (/^[0-9]{9,11}(?:\.[0-9]{1,9})?$/.test(text)) return Number(text);
  const agoMs = readAgoMs(text);
  const seconds = (Number.isNaN(agoMs) ? readIsoDate(text, 'T00:00') : Date.now() - agoMs) / 1_000;
  if (Number.isNaN(seconds))
    throw new InvalidArgumentError(
      'Expected how long ago, such as 15m, 2h or 3d, a date such as 2026-11-30 or 2026-11-30T08:00, or Unix seconds.',
    );
  if (seconds < 0 || seconds > ASKED_SECONDS_MAX)
    throw new InvalidArgumentError('Expected a time from 1970 to 5138.');
  return seconds;
}

/** The same in Unix milliseconds. */
export const parseTime = (text: string): number => Math.round(parseTimeSeconds(text) * 1_000);

/** One of some words, whatever they are of. */
export const parseOneOf =
  <T extends string>(words: readonly T[]) =>
  (text: string): T => {
    const found = words.find((word) => word === text);
    if (found === undefined) throw new InvalidArgumentError(`Expected one of ${words.join(', ')}.`);
    return found;
  };

/** What stands between commas. */
export function parseList(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

export function parseHttpUrl(text: string): string {
  if (!isServiceUrl(text))
    throw new InvalidArgumentError(
      'Expected an http or https address, such as http://localhost:4024, without a user name or password.',
    );
  return text.replace(/\/+$/, '');
}
