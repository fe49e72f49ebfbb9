import { serving } from '@skerry/kit/testing/serving';
import { ERRORS, type ErrorCode } from '@skerry/protocol';

interface Row {
  readonly item_hash: string;
  readonly sender: string;
}

/**
 * A core node that lists these messages, of those who are asked for where any are, a page at a time. @param refusal what it answers
 * instead @param info what it says of itself
 */
export function listingNode(rows: readonly Row[], refusal?: ErrorCode, info?: object) {
  return serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    response.setHeader('content-type', 'application/json');
    if (refusal) {
      response.statusCode = ERRORS[refusal].httpStatus;
      return void response.end(JSON.stringify({ status: 'error', code: refusal, error: 'as it is told to' }));
    }
    if (pathname.endsWith('/info/public.json')) return void response.end(JSON.stringify(info));
    const addresses = searchParams.get('addresses')?.split(',');
    const [size, page] = [Number(searchParams.get('pagination')), Number(searchParams.get('page') ?? 1)];
    const asked = rows.filter(({ sender }) => addresses?.includes(sender) ?? true);
    response.end(
      JSON.stringify({
        messages: asked.slice((page - 1) * size, page * size),
        ...{ pagination_page: page, pagination_total: asked.length, pagination_per_page: size },
        pagination_item: 'messages',
      }),
    );
  });
}
