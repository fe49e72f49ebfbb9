export type Sortable = string | number | boolean | null | undefined;

/** Sorted by a value of each row; what has none is last either way. Rows that are equal keep their order. */
export function sortBy<T>(all: readonly T[], keyOf: (row: T) => Sortable, isDescending: boolean): T[] {
  const isAbsent = (value: Sortable) => value === null || value === undefined;
  return [...all].sort((one, other) => {
    const [a, b] = [keyOf(one), keyOf(other)];
    if (isAbsent(a) || isAbsent(b)) return Number(isAbsent(a)) - Number(isAbsent(b));
    const order =
      typeof a === 'string' && typeof b === 'string' ? a.localeCompare(b) : a! < b! ? -1 : a! > b! ? 1 : 0;
    return isDescending ? -order : order;
  });
}
