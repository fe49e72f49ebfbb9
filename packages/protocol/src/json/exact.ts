import { AppError } from '../errors.ts';
import { scanJson } from './scan.ts';

const DECIMAL = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/;

/** The digits of a number without zeros at either end, and the power of ten that they count. */
function digitsOf(text: string): string {
  const [, whole = '', fraction = '', power = '0'] = DECIMAL.exec(text)!;
  const all = `${whole}${fraction}`.replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  return digits === '' ? '0' : `${digits}e${Number(power) - fraction.length + all.length - digits.length}`;
}

/** A number that would be written with other digits is refused. */
function refuseRounded(source: string): void {
  const value = String(Number(source));
  if (digitsOf(source) !== digitsOf(value))
    throw new AppError(
      'INVALID_JSON',
      `the number ${source} would become ${value}: write it as text, "${source}"`,
    );
}

/**
 * JSON of which nothing is lost when it is written again.
 * @throws SyntaxError where it is none; AppError INVALID_JSON where a key comes twice, a number would be rounded, or no node keeps it
 */
export function parseExactJson(text: string): unknown {
  // Says in its own words where it is no JSON at all.
  const value: unknown = JSON.parse(text);
  scanJson(text, refuseRounded);
  return value;
}
