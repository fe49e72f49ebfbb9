import { AppError } from '@skerry/protocol/forms';

/** What the lists of deployed nodes say of the page. */
interface Page {
  readonly pagination_per_page: number;
  readonly pagination_total?: number;
  readonly next_cursor?: string | null;
}

/** Where a page begins, in the query of the list. */
type Place = { readonly cursor: string } | { readonly page: number };

/** No list of a network is longer. */
const PAGES_MAX = 100_000;

/** Throws UNEXPECTED_ANSWER where a list goes on behind that many pages. */
export function checkPages(count: number): void {
  if (count >= PAGES_MAX)
    throw new AppError('UNEXPECTED_ANSWER', `the list of the core node has more than ${PAGES_MAX} pages`);
}

/** The pages of a list: by cursor, or by number where the node has no cursors. Throws UNEXPECTED_ANSWER where there is no end to them. */
export async function* readPages<P extends Page>(read: (place: Place) => Promise<P>): AsyncGenerator<P> {
  let place: Place = { cursor: '' };
  for (let count = 1; ; count++) {
    const page = await read(place);
    yield page;
    const { next_cursor: next, pagination_per_page: size, pagination_total: total = 0 } = page;
    if (next === null || (next === undefined && (size < 1 || count * size >= total))) return;
    checkPages(count);
    place = next === undefined ? { page: count + 1 } : { cursor: next };
  }
}
