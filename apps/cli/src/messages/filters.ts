import type { Command } from 'commander';
import { readAddresses } from '../address.ts';
import { parseOneOf, parsePositive, parseTimeSeconds } from '../options.ts';

/** How lists of messages and of posts are narrowed: each option is a parameter of the API, in words of a command line. */

export interface DateOptions {
  readonly since?: number;
  readonly until?: number;
}

export interface OrderOptions {
  readonly sort?: 'time' | 'tx-time';
  readonly oldest?: boolean;
}

export interface PageOptions {
  readonly page?: number;
  readonly limit?: number;
}

const WHEN = '2026-11-30, 2026-11-30T08:00, 2h or 3d ago, or Unix seconds';

/** The options that lists of messages and of posts have in common, last. */
export const addListOptions = (command: Command, what: string): Command =>
  command
    .option('--since <time>', `only from this time on: ${WHEN}`, parseTimeSeconds)
    .option('--until <time>', 'only before this time', parseTimeSeconds)
    .option(
      '--sort <order>',
      'time, or tx-time: when a chain first confirmed it (default: time)',
      parseOneOf(['time', 'tx-time']),
    )
    .option('--oldest', 'the oldest first')
    .option('--page <n>', 'page number, from 1 (default: 1)', parsePositive)
    .option('--limit <n>', `${what} per page, up to 100 (default: 20)`, parsePositive);

/** The same as the API has them. */
export const listQueryOf = ({
  since,
  until,
  sort,
  oldest,
  page,
  limit,
}: DateOptions & OrderOptions & PageOptions) => ({
  ...{ startDate: since, endDate: until, sortBy: sort, page, limit },
  sortOrder: oldest === true ? 1 : undefined,
});

export const addressesOf = async (text: string | undefined): Promise<string | undefined> =>
  text === undefined ? undefined : (await readAddresses(text)).join(',');

interface ListAnswer {
  readonly pagination_page?: number;
  readonly pagination_per_page: number;
  readonly pagination_total?: number;
}

/** The page of an answer, in the words of the other lists. */
export function pageOf({
  pagination_page: page = 1,
  pagination_per_page: perPage,
  pagination_total: total = 0,
}: ListAnswer) {
  return { total, page, per_page: perPage, total_pages: Math.ceil(total / perPage) };
}
