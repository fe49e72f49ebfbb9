import { ASKED_SECONDS_MAX } from '@skerry/protocol/api/core/common/dates';

/** Dates as people and scripts write them: ISO 8601, or Unix seconds. */

/** Of a text such as 2026-02-28: the 30th of February would be the 2nd of March. */
export function isDay(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * Unix milliseconds of an ISO 8601 date; NaN where the text is none.
 * @param midnight what to put behind a day alone: `T00:00` is midnight of this computer's zone, `T00:00Z` of UTC
 */
export function readIsoDate(text: string, midnight: 'T00:00' | 'T00:00Z'): number {
  const [, day, time] =
    /^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9:.]+(?:Z|[+-][0-9:]+)?))?$/.exec(text) ?? [];
  if (day === undefined || !isDay(day)) return Number.NaN;
  return Date.parse(day + (time === undefined ? midnight : `T${time}`));
}

/** What a number is that counts no seconds which anybody asks for. */
export const isMilliseconds = (text: string) => /^[0-9]{12,}$/.test(text) && Number(text) > ASKED_SECONDS_MAX;
