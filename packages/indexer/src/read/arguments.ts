import { AppError } from '@skerry/protocol';
import { hashText } from '../abi/topic.ts';

/** Named values in one filter. */
const NAMES_MAX = 8;
const DEPTH_MAX = 8;

/**
 * A filter by argument values as the rows have them: integers as text, hexadecimal in lower case. A text may stand in
 * the row as itself or, where its parameter is indexed, as its hash: each alternative is one JSON object that a row may
 * contain.
 *
 * Throws INVALID_PARAMETERS.
 */
export function parseArguments(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('INVALID_PARAMETERS', 'query.args is a JSON object of argument names and values');
  const entries = Object.entries(value);
  if (entries.length === 0 || entries.length > NAMES_MAX)
    throw new AppError('INVALID_PARAMETERS', `query.args names 1 to ${NAMES_MAX} arguments`);
  let alternatives: string[] = [''];
  for (const [name, one] of entries) {
    const forms = formsOf(one).map((form) => `${JSON.stringify(name)}:${form}`);
    alternatives = alternatives.flatMap((start) => forms.map((form) => (start ? `${start},${form}` : form)));
  }
  return alternatives.map((fields) => `{${fields}}`);
}

const PLAIN = /^(?:-?[0-9]+|0x[0-9a-fA-F]*)$/;

function formsOf(value: unknown): string[] {
  const own = JSON.stringify(normalize(value, 0));
  return typeof value === 'string' && !PLAIN.test(value) ? [own, JSON.stringify(hashText(value))] : [own];
}

function normalize(value: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX) throw new AppError('INVALID_PARAMETERS', 'query.args is nested too deeply');
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value))
      throw new AppError('INVALID_PARAMETERS', 'query.args: write numbers as text, except small integers');
    return String(value);
  }
  if (typeof value === 'string') {
    if (value.includes('\0')) throw new AppError('INVALID_PARAMETERS', 'query.args holds NUL');
    return /^0x[0-9a-f]*$/i.test(value) ? value.toLowerCase() : value;
  }
  if (Array.isArray(value)) return value.map((one) => normalize(one, depth + 1));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, normalize(one, depth + 1)]));
  if (value === null) throw new AppError('INVALID_PARAMETERS', 'query.args: no argument is null');
  return value;
}
