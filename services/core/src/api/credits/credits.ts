import type { Handlers } from '@skerry/kit';
import { periodOf } from '@skerry/protocol';
import type { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { getAccount, listAccounts, listCharges, listHistory } from '../../state/credits/accounts.ts';
import { readPrices } from '../../state/credits/costs.ts';
import { normalizeAddress } from '../../state/lists/parameters.ts';
import { pageOf, paginationOf } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { accountView, historyView, NO_TOKENS } from './credit-views.ts';

/** What is owned and owed: balances, history, prices, charges (docs/credit.md). */
export function creditHandlers({ db, now }: Pick<Rooms, 'db' | 'now'>): Handlers<typeof CREDITS_API> {
  const nowSeconds = () => Math.floor(now() / 1000);
  return {
    async getBalance({ params, query }) {
      const at = query.time ?? nowSeconds();
      const account = await getAccount(db, normalizeAddress(params.address), at);
      return { ...accountView(account, at), ...NO_TOKENS };
    },
    async listCreditHistory({ params, query }) {
      const owner = normalizeAddress(params.address);
      const asked = { owner, kind: query.kind, ref: query.ref };
      const { rows, total } = await listHistory(db, asked, pageOf(query));
      return {
        address: owner,
        credit_history: rows.map(historyView),
        pagination: paginationOf(query, total),
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
      const period = periodOf(query.kind, query.time ?? nowSeconds());
      const charges = await listCharges(db, query.kind, period, query.limit);
      return {
        start_date: period.start,
        end_date: period.end,
        credits: charges.map(({ owner: address, ref, nano: nanocredits }) => ({ address, ref, nanocredits })),
      };
    },
    async listAccounts({ query }) {
      const at = nowSeconds();
      const accounts = await listAccounts(db, at, query.after, query.limit);
      return { accounts: accounts.map((account) => accountView(account, at)) };
    },
  };
}
