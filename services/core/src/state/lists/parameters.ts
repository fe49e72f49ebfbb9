import { AppError, LIMITS } from '@skerry/protocol';
import { type FilteredList, type Filters, namesIn } from '@skerry/protocol/api/core/common/filters';
import { MESSAGE_TYPES, PRIVATE_TYPES } from '../../intake/kinds.ts';

/** Values of a comma-separated parameter; undefined where it was not given. An empty one is a mistake, not "everything". */
export function parseListFilter(name: string, text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const values = text.split(',').map((value) => value.trim());
  if (values.some((value) => value === '')) {
    throw new AppError(
      'INVALID_PARAMETERS',
      `query.${name} is empty; leave the filter out to get everything`,
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

/** Private messages are never listed, and asking for them is no mistake. */
const LISTED_TYPES: readonly string[] = [...MESSAGE_TYPES, ...PRIVATE_TYPES];

/** An unknown type is a mistake that would find nothing for ever. */
export function checkType(type: string, name: string): string {
  if (LISTED_TYPES.includes(type)) return type;
  throw new AppError(
    'INVALID_PARAMETERS',
    `query.${name} has the unknown type ${JSON.stringify(type.slice(0, 64))}; known: ${LISTED_TYPES.join(', ')}`,
  );
}

/** One of a few words; another one would find nothing for ever. */
export const oneOf =
  (known: readonly string[]) =>
  (value: string, name: string): string => {
    if (known.includes(value)) return value;
    throw new AppError('INVALID_PARAMETERS', `query.${name} must be one of ${known.join(', ')}`);
  };

/** How a filter's values are read. */
export interface Read {
  /** One value of a comma list: what it stands for; itself where this is left out. Throws AppError. */
  readonly each?: (value: string, name: string) => string | readonly string[];
}

/**
 * The filters that a query of a list asks for. Throws INVALID_PARAMETERS, and what the readers of values throw.
 * @param filters how they are asked for
 * @param properties how each is read, by the same names: one that lacks a filter does not compile
 */
export function readFilters<F extends Filters>(
  filters: F,
  properties: { readonly [N in keyof F]: Read & object },
  list: FilteredList,
  query: Readonly<Record<string, unknown>>,
): Record<string, readonly string[] | number> {
  return Object.fromEntries(
    Object.entries(filters).flatMap(([filter, asked]): [string, number | string[]][] => {
      const [name, ...others] = namesIn(asked, list).filter((one) => query[one] !== undefined);
      if (name === undefined) return [];
      if (others.length > 0)
        throw new AppError(
          'INVALID_PARAMETERS',
          `query.${name} and query.${others[0]} mean the same; send one of them`,
        );
      const value = query[name];
      if (typeof value === 'number') return [[filter, value]];
      const { each = (one: string) => one } = properties[filter]!;
      const values = parseListFilter(name, value as string)!.flatMap((one) => each(one, name));
      return [[filter, [...new Set(values)]]];
    }),
  );
}
