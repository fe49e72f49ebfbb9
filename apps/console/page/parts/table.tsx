import type { ComponentChildren } from 'preact';
import { route } from '../data/place.ts';
import { linkTo } from '../pure/route.ts';
import { type Sortable, sortBy } from '../pure/sort.ts';

export interface Column<T> {
  readonly name: string;
  readonly title: string;
  /** What it is sorted by; a column without it is not sorted. */
  readonly sort?: (row: T) => Sortable;
  readonly isNumber?: boolean;
  readonly cell: (row: T) => ComponentChildren;
  /** What stands below the column, of all rows. */
  readonly total?: (rows: readonly T[]) => ComponentChildren;
}

interface SortTableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Name of the column that it is sorted by at first. */
  readonly first: string;
  /** Whether its cells say themselves what they are, where there is no room for headings. */
  readonly isCompact?: boolean;
}

function Heading<T>({
  column,
  isSorted,
  isDescending,
}: {
  readonly column: Column<T>;
  readonly isSorted: boolean;
  readonly isDescending: boolean;
}) {
  const { parts, query } = route.value;
  const next =
    isSorted && !isDescending ? 'down' : isSorted ? undefined : column.isNumber ? 'down' : undefined;
  const order = isSorted ? (isDescending ? 'descending' : 'ascending') : 'none';
  return (
    <th class={column.isNumber ? 'number' : ''} {...(column.sort ? { 'aria-sort': order as 'none' } : {})}>
      {column.sort ? (
        <a href={linkTo(parts, { ...query, sort: column.name, order: next })}>
          {column.title}
          <span aria-hidden="true" class="order">
            {isSorted ? (isDescending ? '↓' : '↑') : ''}
          </span>
        </a>
      ) : (
        column.title
      )}
    </th>
  );
}

/** A table that is sorted by its headings. The order stands in the address, so that it can be linked. */
export function SortTable<T>({ label, columns, rows, keyOf, first, isCompact }: SortTableProps<T>) {
  const { sort, order } = route.value.query;
  const column = columns.find(({ name, sort: by }) => by && name === (sort ?? first));
  const isDescending = order === 'down';
  const sorted = column?.sort ? sortBy(rows, column.sort, isDescending) : rows;
  return (
    <div class="scroll">
      <table class={isCompact ? 'rows compact' : 'rows'} aria-label={label}>
        <thead>
          <tr>
            {columns.map((one) => (
              <Heading key={one.name} column={one} isSorted={one === column} isDescending={isDescending} />
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((one) => (
                <td key={one.name} class={one.isNumber ? 'number' : ''} data-title={one.title}>
                  {one.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {rows.length > 1 && columns.some(({ total }) => total) ? (
          <tfoot>
            <tr>
              {columns.map((one) => (
                <td key={one.name} class={one.isNumber ? 'number' : ''} data-title={one.title}>
                  {one.total?.(rows) ?? null}
                </td>
              ))}
            </tr>
          </tfoot>
        ) : null}
      </table>
    </div>
  );
}
