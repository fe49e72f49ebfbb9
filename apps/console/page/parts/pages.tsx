import { route } from '../data/place.ts';
import { count } from '../pure/format.ts';
import { linkTo } from '../pure/route.ts';

/** The page of a list that the address names, from 1. */
export const pageOf = ({ page }: Readonly<Record<string, string>>) =>
  Math.max(1, Math.floor(Number(page ?? 1)) || 1);

/** The way to newer and to older lines of a list. @param props.total of all its pages; undefined while it is not known */
export function Pages({ size, total }: { readonly size: number; readonly total: number | undefined }) {
  const { parts, query } = route.value;
  const page = pageOf(query);
  const last = total === undefined ? undefined : Math.ceil(total / size);
  const isLast = last === undefined || page >= last;
  if (page === 1 && isLast) return null;
  const linkToPage = (to: number) => linkTo(parts, { ...query, page: to > 1 ? String(to) : '' });
  return (
    <p class="actions">
      {page > 1 ? <a href={linkToPage(page - 1)}>Newer</a> : null}
      <span class="muted">
        page {count(page)}
        {last === undefined || page > last ? '' : ` of ${count(last)}`}
      </span>
      {isLast ? null : <a href={linkToPage(page + 1)}>Older</a>}
    </p>
  );
}
