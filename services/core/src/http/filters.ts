import { AppError, LIMITS } from '@skerry/protocol';
import { MESSAGE_TYPES } from '../messages/contents.ts';

/** A comma-separated filter: its values, or undefined where it was not given. An empty one is a mistake, not "everything". */
export function parseListFilter(name: string, text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const values = text.split(',').map((value) => value.trim());
  if (values.some((value) => value === '')) {
    throw new AppError(
      'INVALID_PARAMETERS',
      `query.${name} has an empty value; leave the filter out to get everything`,
    );
  }
  if (values.length > LIMITS.filterValues) {
    throw new AppError(
      'INVALID_PARAMETERS',
      `query.${name} has ${values.length} values; at most ${LIMITS.filterValues}`,
    );
  }
  return values;
}

/** WEBHOOK messages are private: they are never listed, and asking for them is no mistake. */
const LISTED_TYPES: readonly string[] = [...MESSAGE_TYPES, 'WEBHOOK'];

/** A filter of message types; an unknown one is a mistake that would find nothing for ever. */
export function parseTypes(name: string, text: string | undefined): string[] | undefined {
  const types = parseListFilter(name, text);
  for (const type of types ?? []) {
    if (LISTED_TYPES.includes(type)) continue;
    throw new AppError(
      'INVALID_PARAMETERS',
      `query.${name} has the unknown type ${JSON.stringify(type.slice(0, 64))}; known: ${LISTED_TYPES.join(', ')}`,
    );
  }
  return types;
}

/** Addresses are compared in the one spelling they are kept in; chains other than EVM do not begin with 0x. */
export const normalizeAddress = (address: string): string =>
  /^0x/i.test(address) ? address.toLowerCase() : address;
