import { AppError } from '@skerry/protocol';
import { hashText } from '../abi/topic.ts';

/** Named values in one filter. */
const NAMES_MAX = 8;
const DEPTH_MAX = 8;

/** Values that a row may have, in JSON. */
export interface ArgumentValues {
  /** An object that its arguments contain, which an index finds. */
  readonly contained: string;
  /** Lists and tuples by name: they contain others, and have to be equal. */
  readonly equal: readonly (readonly [name: string, value: string])[];
}

/**
 * A filter by argument values as the rows have them: integers as text, bytes in lower case. What looks like bytes may be
 * a text that somebody wrote so, and a text may stand in the row as itself or, where its parameter is indexed, as its hash:
 * a row has to fit one of the alternatives.
 *
 * Throws INVALID_PARAMETERS.
 */
export function parseArguments(value: unknown): ArgumentValues[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('INVALID_PARAMETERS', 'query.args is a JSON object of argument names and values');
  const entries = Object.entries(value);
  if (entries.length === 0 || entries.length > NAMES_MAX)
    throw new AppError('INVALID_PARAMETERS', `query.args names 1 to ${NAMES_MAX} arguments`);
  let alternatives: (readonly (readonly [string, string])[])[] = [[]];
  for (const [name, one] of entries) {
    checkText(name);
    const forms = formsOf(one);
    alternatives = alternatives.flatMap((start) => forms.map((form) => [...start, [name, form] as const]));
  }
  return alternatives.map((fields) => ({
    contained: `{${fields.map(([name, form]) => `${JSON.stringify(name)}:${form}`).join()}}`,
    equal: fields.filter(([, form]) => /^[[{]/.test(form)),
  }));
}

const PLAIN = /^(?:-?[0-9]+|0x[0-9a-fA-F]*)$/;
const BYTES = /^0x[0-9a-f]*$/i;

/** At most two: their numbers multiply. */
function formsOf(value: unknown): string[] {
  const own = JSON.stringify(normalize(value, 0, (text) => text));
  if (typeof value === 'string' && !PLAIN.test(value)) return [own, JSON.stringify(hashText(value))];
  const lower = normalize(value, 0, (text) => (BYTES.test(text) ? text.toLowerCase() : text));
  return [...new Set([JSON.stringify(lower), own])];
}

/** What a row cannot hold, the database takes for no JSON. Throws INVALID_PARAMETERS. */
function checkText(text: string): string {
  if (text.includes('\0') || !text.isWellFormed())
    throw new AppError('INVALID_PARAMETERS', 'query.args holds NUL, or half of a surrogate pair');
  return text;
}

function normalize(value: unknown, depth: number, write: (text: string) => string): unknown {
  if (depth > DEPTH_MAX) throw new AppError('INVALID_PARAMETERS', 'query.args is nested too deeply');
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value))
      throw new AppError('INVALID_PARAMETERS', 'query.args: write numbers as text, except small integers');
    return String(value);
  }
  if (typeof value === 'string') return write(checkText(value));
  if (Array.isArray(value)) return value.map((one) => normalize(one, depth + 1, write));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [checkText(name), normalize(one, depth + 1, write)]),
    );
  if (value === null) throw new AppError('INVALID_PARAMETERS', 'query.args: no argument is null');
  return value;
}
