import type { Handlers } from '@skerry/kit';
import { periodOf } from '@skerry/protocol';
import { isYes } from '@skerry/protocol/api/core/common/flag';
import type { CREDITS_API } from '@skerry/protocol/api/core/credits';
import type { FastifyReply } from 'fastify';
import { getAccount, listAccounts, listCharges } from '../../state/credits/accounts.ts';
import { readPrices } from '../../state/credits/costs.ts';
import { listHistory } from '../../state/credits/history.ts';
import { withTimeLimit } from '../../state/lists/time-limit.ts';
import { readAddress } from '../address.ts';
import { deployedPaginationOf, eitherSizeOf, pageOf, paginationOf } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { accountView, historyView, NO_TOKENS } from './credit-views.ts';
import { historyFilterOf } from './history-filter.ts';

type Used = Pick<Rooms, 'db' | 'now' | 'clientOf' | 'longLists'>;
type CreditHandlers = Handlers<typeof CREDITS_API>;

const secondsBy =
  ({ now }: Used) =>
  () =>
    Math.floor(now() / 1000);

/** As long as it takes for the services of the node, by which all are charged; strangers have the time of a list. */
const within = <T>(
  { db, clientOf, longLists }: Used,
  reply: FastifyReply,
  read: (on: Used['db']) => Promise<T>,
) => (clientOf(reply.request).isExempt ? read(db) : withTimeLimit(longLists.askedIn(db, reply), read));

/** Of one address, and what things cost. */
function ownCredits(used: Used): Omit<CreditHandlers, 'listCharges' | 'listAccounts'> {
  const { db, longLists } = used;
  const nowSeconds = secondsBy(used);
  return {
    async getBalance({ params, query, reply }) {
      const at = query.time ?? nowSeconds();
      const address = await readAddress(db, params.address);
      const account = await within(used, reply, (on) => getAccount(on, address, at));
      const view = accountView(account, at);
      const details = [{ expiration_date: null, amount: view.credit_balance }];
      return {
        ...view,
        ...NO_TOKENS,
        address: params.address,
        ...(isYes(query.include_credit_details) ? { credit_balance_details: details } : {}),
      };
    },
    async listCreditHistory({ params, query, reply }) {
      const filter = historyFilterOf(await readAddress(db, params.address), query);
      const size = eitherSizeOf(query);
      const page = pageOf({ page: query.page, limit: size });
      const order = { oldestFirst: query.sort_order === 1, byAmount: query.sort_by === 'amount' };
      const { rows, total } = filter
        ? await listHistory(longLists.askedIn(db, reply), filter, { ...page, ...order })
        : { rows: [], total: 0 };
      return {
        address: params.address,
        credit_history: rows.map(historyView),
        pagination: paginationOf({ page: query.page, limit: size }, total),
        ...deployedPaginationOf({ page: query.page, pagination: size }, total),
      };
    },
    async listPrices() {
      const rows = await readPrices(db, nowSeconds());
      const prices = rows.map(
        ({ kind, compute_unit, storage_mib, from_time: since }) =>
          [kind, { compute_unit, storage_mib, since }] as const,
      );
      return { prices: Object.fromEntries(prices) };
    },
  };
}

/** Of everybody: what the credit service goes by. */
function allCredits(used: Used): Pick<CreditHandlers, 'listCharges' | 'listAccounts'> {
  const nowSeconds = secondsBy(used);
  return {
    async listCharges({ query, reply }) {
      const at = nowSeconds();
      const period = periodOf(query.kind, query.time ?? at);
      const charges = await within(used, reply, (on) => listCharges(on, query.kind, period, at, query.limit));
      return {
        start_date: period.start,
        end_date: period.end,
        credits: charges.map(({ owner: address, ref, nano }) => ({
          address,
          ref,
          nanocredits: String(nano),
        })),
      };
    },
    async listAccounts({ query, reply }) {
      const at = nowSeconds();
      const accounts = await within(used, reply, (on) => listAccounts(on, at, query.after, query.limit));
      return { accounts: accounts.map((account) => accountView(account, at)) };
    },
  };
}

/** What is owned and owed: balances, history, prices, charges (docs/credit.md). */
export const creditHandlers = (used: Used): CreditHandlers => ({ ...ownCredits(used), ...allCredits(used) });
