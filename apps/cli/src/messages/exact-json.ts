import { AppError, scanJson } from '@skerry/protocol/forms';

const DECIMAL = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/;

/** The digits of a number without zeros at either end, and the power of ten that they count. */
function digitsOf(text: string): string {
  const [, whole = '', fraction = '', power = '0'] = DECIMAL.exec(text)!;
  const all = `${whole}${fraction}`.replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  return digits === '' ? '0' : `${digits}e${Number(power) - fraction.length + all.length - digits.length}`;
}

/** What is sent is what was given: a number that would be written with other digits is refused. */
function refuseRounded(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value === 'number' && source !== undefined && digitsOf(source) !== digitsOf(String(value)))
    throw new AppError(
      'INVALID_JSON',
      `the number ${source} would become ${value}: write it as text, "${source}"`,
    );
  return value;
}

/** The types of the language do not know yet that the source is given. */
const parseWith = JSON.parse as (text: string, reviver: typeof refuseRounded) => unknown;

/**
 * JSON of which nothing is lost when it is written again.
 * @throws SyntaxError where it is none; AppError INVALID_JSON where a key comes twice, a number would be rounded, or no node keeps it
 */
export function parseExactJson(text: string): unknown {
  // Says in its own words where it is no JSON at all.
  JSON.parse(text);
  scanJson(text);
  return parseWith(text, refuseRounded);
}
