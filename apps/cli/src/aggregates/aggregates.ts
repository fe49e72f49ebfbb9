import type { AggregateView } from '@skerry/protocol/api/core/aggregates';
import { AppError } from '@skerry/protocol/forms';
import { ownerOf, readAddress } from '../address.ts';
import type { Context } from '../context.ts';
import type { PageOptions } from '../messages/filters.ts';
import { jsonText, plainText, renderTime } from '../output/text.ts';

export interface AggregateListOptions extends PageOptions {
  readonly all?: boolean;
  readonly key?: string;
}

/** Aggregates of an owner that are read at once where no key is named: as many as a page has. */
const PAGE_SIZE = 100;

/** What people read: the content alone where there is one. */
function render(aggregates: readonly AggregateView[], isOne: boolean): string {
  const contents = Object.fromEntries(aggregates.map(({ key, content }) => [key, content]));
  return jsonText(isOne ? aggregates[0]!.content : contents, 2);
}

/**
 * Shows aggregates of an owner: those that are named, or all of a page.
 * @throws AppError AGGREGATE_NOT_FOUND where one that is named is not there
 */
export async function getAggregates(
  { reader, output }: Context,
  owner: string,
  keys: readonly string[],
): Promise<void> {
  const address = await readAddress(owner);
  if (keys.length > 0) {
    const aggregates: AggregateView[] = [];
    for (const key of new Set(keys)) aggregates.push(await reader.getAggregate(address, key));
    output.result({ address, aggregates }, render(aggregates, aggregates.length === 1));
    return;
  }
  const { aggregates, pagination } = await reader.listAggregates({ addresses: address, limit: PAGE_SIZE });
  output.result({ address, aggregates, pagination }, render(aggregates, false));
  if (aggregates.length === 0) output.note('no aggregates');
  if (pagination.total > aggregates.length)
    output.note(
      `the ${aggregates.length} that changed last, of ${pagination.total}; "skerry aggregate list ${address}" names all`,
    );
}

/** Lists keys of aggregates: of one owner, or of everybody. @throws AppError INVALID_PARAMETERS where both are asked for */
export async function listAggregates(
  context: Context,
  owner: string | undefined,
  { all, key, page, limit }: AggregateListOptions,
): Promise<void> {
  const { reader, output } = context;
  if (all === true && owner !== undefined)
    throw new AppError('INVALID_PARAMETERS', 'an address and --all do not go together');
  const addresses = all === true ? undefined : await ownerOf(context, owner);
  const answer = await reader.listAggregates({ addresses, keys: key, page, limit });
  const rows = answer.aggregates.map((one) => [
    renderTime(one.time),
    plainText(one.address),
    plainText(one.key),
    one.item_hash,
  ]);
  output.result(answer, output.table(['CHANGED', 'OWNER', 'KEY', 'MESSAGE'], rows, 'no aggregates'));
  output.page(answer.pagination, 'aggregates');
}
