import type { Handlers } from '@skerry/kit';
import { periodOf } from '@skerry/protocol';
import { isYes } from '@skerry/protocol/api/core/common/flag';
import type { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { getAccount, listAccounts, listCharges } from '../../state/credits/accounts.ts';
import { readPrices } from '../../state/credits/costs.ts';
import { listHistory } from '../../state/credits/history.ts';
import { readAddress } from '../address.ts';
import { deployedPaginationOf, eitherSizeOf, pageOf, paginationOf } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { accountView, historyView, NO_TOKENS } from './credit-views.ts';
import { historyFilterOf } from './history-filter.ts';

/** What is owned and owed: balances, history, prices, charges (docs/credit.md). */
export function creditHandlers({ db, now }: Pick<Rooms, 'db' | 'now'>): Handlers<typeof CREDITS_API> {
  const nowSeconds = () => Math.floor(now() / 1000);
  return {
    async getBalance({ params, query }) {
      const at = query.time ?? nowSeconds();
      const account = await getAccount(db, await readAddress(db, params.address), at);
      const view = accountView(account, at);
      const details = [{ expiration_date: null, amount: view.credit_balance }];
      return {
        ...view,
        ...NO_TOKENS,
        address: params.address,
        ...(isYes(query.include_credit_details) ? { credit_balance_details: details } : {}),
      };
    },
    async listCreditHistory({ params, query }) {
      const filter = historyFilterOf(await readAddress(db, params.address), query);
      const size = eitherSizeOf(query);
      const page = pageOf({ page: query.page, limit: size });
      const order = { oldestFirst: query.sort_order === 1, byAmount: query.sort_by === 'amount' };
      const { rows, total } = filter
        ? await listHistory(db, filter, { ...page, ...order })
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
    async listCharges({ query }) {
      const at = nowSeconds();
      const period = periodOf(query.kind, query.time ?? at);
      const charges = await listCharges(db, query.kind, period, at, query.limit);
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
    async listAccounts({ query }) {
      const at = nowSeconds();
      const accounts = await listAccounts(db, at, query.after, query.limit);
      return { accounts: accounts.map((account) => accountView(account, at)) };
    },
  };
}
