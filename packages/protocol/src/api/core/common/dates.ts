import { Type } from '../../../type.ts';

/**
 * The last second that a list is asked for: the year 5138. The same number in milliseconds is a day of 1973, so that what is above
 * can only be milliseconds, and would be answered with an empty list.
 */
export const ASKED_SECONDS_MAX = 99_999_999_999;

const bounds = { minimum: 0, maximum: ASKED_SECONDS_MAX } as const;

/** A date that something is asked for by. What refuses it names the unit, which it takes from the description. */
export const unixSeconds = (description: string) =>
  Type.Optional(Type.Number({ ...bounds, description: `Unix seconds, ${description}` }));

/** The same in whole seconds. */
export const wholeUnixSeconds = (description: string) =>
  Type.Optional(Type.Integer({ ...bounds, description: `Unix seconds, ${description}` }));

export const fromTime = unixSeconds('inclusive');
export const toTime = unixSeconds('exclusive; 0 for no end');
