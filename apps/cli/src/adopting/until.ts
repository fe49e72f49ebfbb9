import { AppError } from '@skerry/protocol';
import { parseMoment } from '../scores/compute.ts';

/** Unix seconds. Of a moment that is still to come everything would count, also what a thief has signed. @throws AppError INVALID_PARAMETERS */
export function parseUntil(text: string): number {
  const until = parseMoment(text);
  if (until * 1_000 <= Date.now()) return until;
  throw new AppError('INVALID_PARAMETERS', `--until ${text} is still to come; name a moment before the leak`);
}

/** The moment as it was understood: a date without a zone is one of this computer's. */
export const untilFields = (until: number): [string, string][] => [
  ['until', new Date(until * 1_000).toISOString().replace('.000Z', 'Z')],
];

/** Where signing broke off. @param of how many, where that is known */
export const wordsOnBreak = (signed: number, of?: number): string =>
  `signed until then: ${signed}${of === undefined ? '' : ` of ${of}`}; repeat the command to go on`;
