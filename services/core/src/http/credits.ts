import type { HttpServer } from '@skerry/kit';
import {
  AppError,
  CREDIT_LINES_MAX,
  PaginationView,
  parseMessageHash,
  periodOf,
  RESOURCE_KINDS,
} from '@skerry/protocol';
import Type from 'typebox';
import {
  findCost,
  getAccount,
  listAccounts,
  listCharges,
  listCosts,
  listHistory,
  readPrices,
} from '../credits/read.ts';
import {
  AccountView,
  accountView,
  CostView,
  costView,
  decimals,
  digits,
  HistoryView,
  historyView,
  NO_TOKENS,
  time,
  ZERO,
} from './credit-views.ts';
import { reads } from './declare.ts';
import { normalizeAddress } from './filters.ts';
import { pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';

const NO_NUL = '^[^\\u0000]*$';
const AddressParams = Type.Object({ address: Type.String({ maxLength: 128, pattern: NO_NUL }) });
const PriceParams = Type.Object({ item_hash: Type.String({ description: 'the item hash of its message' }) });

const COST_TYPE = { instance: 'EXECUTION', program: 'EXECUTION', storage: 'STORAGE' } as const;

/** What is owned and owed: balances, history, costs (docs/credit.md). Reading is for everyone. */
export async function creditRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const { db } = rooms;
  const nowSeconds = () => Math.floor(rooms.now() / 1000);

  app.get(
    '/addresses/:address/balance',
    {
      schema: {
        summary: 'The credit of an address, as of a time',
        params: AddressParams,
        querystring: Type.Object({ time: Type.Optional(time('Unix seconds; now if left out')) }),
        response: {
          200: Type.Object({
            ...AccountView,
            balance: Type.Number({ description: 'tokens held: none, everything is paid by credit' }),
            details: Type.Object({}),
            locked_amount: Type.Number(),
            credit_balance_details: Type.Null(),
          }),
        },
      },
      config: reads(),
    },
    async ({ params, query }) => {
      const at = query.time ?? nowSeconds();
      const account = await getAccount(db, normalizeAddress(params.address), at);
      return { ...accountView(account, at), ...NO_TOKENS };
    },
  );

  app.get(
    '/addresses/:address/credit_history',
    {
      schema: {
        summary: 'What an address bought and used, newest first',
        params: AddressParams,
        querystring: Type.Object({
          page: pageQuery.page,
          limit: pageQuery.limit,
          kind: Type.Optional(
            Type.Enum(['purchase', 'expense'], { description: 'what was bought, or used' }),
          ),
          ref: Type.Optional(
            Type.String({ maxLength: 256, pattern: NO_NUL, description: 'of one transaction or resource' }),
          ),
        }),
        response: {
          200: Type.Object({
            address: Type.String(),
            credit_history: Type.Array(HistoryView),
            pagination: PaginationView,
          }),
        },
      },
      config: reads(),
    },
    async ({ params, query }) => {
      const owner = normalizeAddress(params.address);
      const { rows, total } = await listHistory(
        db,
        { owner, kind: query.kind, ref: query.ref },
        pageOf(query),
      );
      return {
        address: owner,
        credit_history: rows.map(historyView),
        pagination: paginationOf(query, total),
      };
    },
  );

  app.get(
    '/costs',
    {
      schema: {
        summary: 'What the instances, programs and files of an address cost, newest first',
        querystring: Type.Object({
          address: Type.String({ minLength: 1, maxLength: 128, pattern: NO_NUL }),
          page: pageQuery.page,
          limit: pageQuery.limit,
        }),
        response: {
          200: Type.Object({
            summary: Type.Object({
              resource_count: Type.Integer(),
              total_cost_credit: Type.String({ description: 'credits per second, of all pages' }),
              total_cost_hold: Type.String(),
              total_cost_stream: Type.String(),
            }),
            resources: Type.Array(CostView),
            pagination: PaginationView,
          }),
        },
      },
      config: reads(),
    },
    async ({ query }) => {
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
  );

  app.get(
    '/price/:item_hash',
    {
      schema: {
        summary: 'What an instance, a program or a file costs',
        params: PriceParams,
        response: {
          200: Type.Object({
            required_tokens: Type.Number({ description: 'none are to be held' }),
            payment_type: Type.Literal('credit'),
            cost: Type.String({ description: 'credits per second, 18 decimals' }),
            detail: Type.Array(Type.Unknown()),
            charged_address: Type.String(),
          }),
        },
      },
      config: reads('INVALID_HASH', 'COST_NOT_FOUND'),
    },
    async ({ params }) => {
      const { hash } = parseMessageHash(params.item_hash);
      const row = await findCost(db, hash);
      if (!row)
        throw new AppError('COST_NOT_FOUND', `${hash} is no instance, program or file that is in force here`);
      const { item_hash: name, cost_hold, cost_stream, cost_credit, size_mib } = costView(row);
      const detail = [{ type: COST_TYPE[row.kind], name, cost_hold, cost_stream, cost_credit, size_mib }];
      return {
        required_tokens: 0,
        payment_type: 'credit' as const,
        cost: cost_credit,
        detail,
        charged_address: row.owner,
      };
    },
  );

  app.get(
    '/credits/prices',
    {
      schema: {
        summary: 'The prices of new instances, programs and files',
        response: {
          200: Type.Object({
            prices: Type.Record(
              Type.String(),
              Type.Object({
                compute_unit: digits('billionths of a credit per second'),
                storage_mib: digits('the same'),
                since: Type.Integer({ description: 'Unix seconds' }),
              }),
            ),
          }),
        },
      },
      config: reads(),
    },
    async () => {
      const rows = await readPrices(db, nowSeconds());
      const prices = rows.map(
        ({ kind, compute_unit, storage_mib, from_time: since }) =>
          [kind, { compute_unit, storage_mib, since }] as const,
      );
      return { prices: Object.fromEntries(prices) };
    },
  );

  app.get(
    '/credits/charges',
    {
      schema: {
        summary: 'What is not charged yet for a period',
        querystring: Type.Object({
          kind: Type.Enum([...RESOURCE_KINDS], {
            description: 'machines are charged by the hour, files by the day',
          }),
          time: Type.Optional(time('of the period; now if left out')),
          limit: Type.Integer({ minimum: 1, maximum: CREDIT_LINES_MAX, default: CREDIT_LINES_MAX }),
        }),
        response: {
          200: Type.Object({
            start_date: Type.Integer({ description: 'Unix seconds' }),
            end_date: Type.Integer(),
            credits: Type.Array(
              Type.Object({
                address: Type.String(),
                ref: Type.String(),
                nanocredits: digits('billionths of a credit'),
              }),
            ),
          }),
        },
      },
      config: reads(),
    },
    async ({ query }) => {
      const period = periodOf(query.kind, query.time ?? nowSeconds());
      const charges = await listCharges(db, query.kind, period, query.limit);
      return {
        start_date: period.start,
        end_date: period.end,
        credits: charges.map(({ owner: address, ref, nano: nanocredits }) => ({ address, ref, nanocredits })),
      };
    },
  );

  app.get(
    '/credits/accounts',
    {
      schema: {
        summary: 'Every account, in order of address',
        querystring: Type.Object({
          after: Type.String({
            maxLength: 128,
            pattern: NO_NUL,
            default: '',
            description: 'the last address of the page before',
          }),
          limit: pageQuery.limit,
        }),
        response: { 200: Type.Object({ accounts: Type.Array(Type.Object(AccountView)) }) },
      },
      config: reads(),
    },
    async ({ query }) => {
      const at = nowSeconds();
      const accounts = await listAccounts(db, at, query.after, query.limit);
      return { accounts: accounts.map((account) => accountView(account, at)) };
    },
  );
}
