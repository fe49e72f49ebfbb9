import type { Handlers } from '@skerry/kit';
import { AppError, parseMessageHash, periodOf } from '@skerry/protocol';
import type { CREDITS_API } from '@skerry/protocol/api/core/credits';
import {
  findCost,
  getAccount,
  listAccounts,
  listCharges,
  listCosts,
  listHistory,
  readPrices,
} from '../../state/credits/accounts.ts';
import { normalizeAddress } from '../../state/lists/parameters.ts';
import { pageOf, paginationOf } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { accountView, costView, decimals, historyView, NO_TOKENS, ZERO } from './credit-views.ts';

const COST_TYPE = { instance: 'EXECUTION', program: 'EXECUTION', storage: 'STORAGE' } as const;

/** What is owned and owed: balances, history, costs (docs/credit.md). */
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
    async listCosts({ query }) {
      const owner = normalizeAddress(query.address);
      const { rows, total } = await listCosts(db, owner, pageOf(query));
      const { rate } = await getAccount(db, owner, nowSeconds());
      const summary = {
        resource_count: total,
        total_cost_credit: decimals(rate),
        total_cost_hold: ZERO,
        total_cost_stream: ZERO,
      };
      return { summary, resources: rows.map(costView), pagination: paginationOf(query, total) };
    },
    async getCost({ params }) {
      const { hash } = parseMessageHash(params.item_hash);
      const row = await findCost(db, hash);
      if (!row)
        throw new AppError('COST_NOT_FOUND', `${hash} is no instance, program or file that is in force here`);
      const { item_hash: name, cost_hold, cost_stream, cost_credit, size_mib } = costView(row);
      return {
        required_tokens: 0,
        payment_type: 'credit',
        cost: cost_credit,
        detail: [{ type: COST_TYPE[row.kind], name, cost_hold, cost_stream, cost_credit, size_mib }],
        charged_address: row.owner,
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
