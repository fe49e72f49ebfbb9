import type { SizeRange } from '@skerry/protocol/content/sizes';
import { count } from '../format.ts';

/** A whole number of a range, as it is typed; undefined where it is none. */
export function numberIn({ minimum, maximum }: SizeRange, digits: string): number | undefined {
  if (!/^[0-9]{1,9}$/.test(digits.trim())) return undefined;
  const value = Number(digits);
  return value >= minimum && value <= maximum ? value : undefined;
}

/** `a whole number of MiB from 128 to 1,048,576` */
export const rangeText = ({ minimum, maximum }: SizeRange, unit?: string): string =>
  `a whole number${unit === undefined ? '' : ` of ${unit}`} from ${count(minimum)} to ${count(maximum)}`;
