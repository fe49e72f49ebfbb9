import { LIMITS } from '../limits.ts';

const sumOver = (values: readonly unknown[]): number => {
  let sum = 0;
  for (const one of values) sum += grownChars(one);
  return sum;
};

/** JSON writes a number with an exponent from here on, and below the other one. */
const [FROM, BELOW] = [1e21, 1e-6];

/** How much longer a number is without its exponent than `LIMITS.numberGrowth` times what JSON writes of it and its comma. */
function grownBy(value: number): number {
  const size = Math.abs(value);
  if (size === 0 || (size >= BELOW && size < FROM)) return 0;
  const [mantissa = '', exponent] = String(size).split('e');
  const power = Number(exponent);
  const digits = mantissa.length === 1 ? 1 : mantissa.length - 1;
  const chars = power > 0 ? power + 1 : '0.'.length - power - 1 + digits;
  const sign = value < 0 ? 1 : 0;
  return Math.max(0, sign + chars - LIMITS.numberGrowth * (JSON.stringify(value).length + 1));
}

function grownChars(value: unknown): number {
  if (typeof value === 'number') return grownBy(value);
  if (typeof value !== 'object' || value === null) return 0;
  return sumOver(Array.isArray(value) ? value : Object.values(value));
}

/**
 * Why a content's numbers would be too long where they are written without exponents, as databases write them: `9e307` has 308 digits.
 * undefined where they are not. Another node may have it already, so of what nodes pass on this is a matter of the verdict.
 * @param content as `JSON.parse` gives it, no deeper than LIMITS.jsonDepth
 */
export function whyTooLongWrittenOut(content: unknown): string | undefined {
  const chars = grownChars(content);
  if (chars <= LIMITS.grownNumberChars) return undefined;
  return `without exponents the content's very large and very small numbers have ${chars} characters more than ${LIMITS.numberGrowth} times their length, and may have ${LIMITS.grownNumberChars}: write them as text`;
}
