import { call } from '@skerry/client/call';
import { COSTS_API } from '@skerry/protocol/api/core/costs';
import { ADDRESSES_API } from '@skerry/protocol/api/core/deployed/addresses';
import { AppError, costIn, showCredits } from '@skerry/protocol/forms';
import { ownerOf } from '../address.ts';
import type { Context } from '../context.ts';
import { plainText, renderBytes, renderTime } from '../output/text.ts';

export interface FileListOptions {
  readonly address?: string;
  readonly page?: number;
  readonly limit: number;
}

/** As many as a core node tells at once, the newest; what an older file costs, "skerry credit costs" says. */
const COSTS = 1_000;

/** What each message costs, in billionths of a credit per second. Of a node that does not say, nothing is known. */
async function readCosts({ coreUrl }: Context, address: string): Promise<ReadonlyMap<string, string>> {
  const query = { address, pagination: COSTS, include_details: 1 };
  try {
    const { resources = [] } = await call(coreUrl, COSTS_API.listCosts, { query });
    return new Map(resources.map(({ item_hash: hash, cost_credit_nano: nano }) => [hash, nano]));
  } catch (error) {
    if (error instanceof AppError) return new Map();
    throw error;
  }
}

/** Lists the files that an owner keeps, the newest first: each with the message that keeps it, and that a "message forget" ends. */
export async function listFiles(context: Context, options: FileListOptions): Promise<void> {
  const { coreUrl, output } = context;
  const { page, limit } = options;
  const address = await ownerOf(context, options.address);
  const [answer, costs] = await Promise.all([
    call(coreUrl, ADDRESSES_API.listAddressFiles, {
      params: { address },
      query: { page, pagination: limit },
    }),
    readCosts(context, address),
  ]);
  const files = answer.files.map((file) => ({
    ...file,
    cost_credit_nano: costs.get(file.item_hash) ?? null,
  }));
  const rows = files.map(({ created, size, cost_credit_nano: nano, file_hash: hash, item_hash: message }) => [
    renderTime(Date.parse(created) / 1_000),
    renderBytes(size),
    nano === null ? '' : showCredits(costIn('month', BigInt(nano))),
    plainText(hash),
    plainText(message),
  ]);
  const head = ['CREATED', 'SIZE', 'PER MONTH', 'FILE', 'MESSAGE'];
  output.result({ ...answer, files }, output.table(head, rows, 'no files'));
  const { pagination_total: total } = answer;
  output.page({ page: answer.pagination_page, total, total_pages: Math.ceil(total / limit) }, 'files');
  if (rows.length > 0) output.note(`${renderBytes(answer.total_size)} in all`);
}
