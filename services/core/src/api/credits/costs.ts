import { cached, type Handlers } from '@skerry/kit';
import {
  AppError,
  creditsOf,
  estimateNeeds,
  type PricedType,
  parseMessageHash,
  scanJsonObject,
} from '@skerry/protocol';
import { isYes } from '@skerry/protocol/api/core/common/flag';
import type { COSTS_API } from '@skerry/protocol/api/core/costs';
import {
  type Cost,
  type CostTotals,
  countPriceChanges,
  findCost,
  listCosts,
  readPriceTable,
  readUsed,
  sumCosts,
} from '../../state/credits/costs.ts';
import { decideCreditAgain } from '../../state/credits/derive.ts';
import { rewritePrices } from '../../state/credits/write.ts';
import { findMessage } from '../../state/messages/find.ts';
import { findSizeOfFile } from '../../store/files/references.ts';
import { lockWrites } from '../../store/write-lock.ts';
import { readAddress } from '../address.ts';
import type { Rooms } from '../rooms.ts';
import { consumedView, costView, decimals, priceView, ZERO } from './cost-views.ts';
import { checkOperator } from './operator.ts';

/** What everybody's things cost together is read at most so often. */
const TOTALS_MS = 60_000;
const NOTHING: CostTotals = { count: 0, rate: 0n, used: 0n };
const EVERYTHING = {};

type Used = Pick<Rooms, 'db' | 'commonDb' | 'now' | 'settings' | 'resumeLine' | 'longLists'>;
type CostHandlers = Handlers<typeof COSTS_API>;

async function getCost(db: Rooms['db'], text: string): Promise<Cost> {
  const { hash } = parseMessageHash(text);
  const cost = await findCost(db, hash);
  if (cost) return cost;
  if ((await findMessage(db, hash))?.status === 'forgotten')
    throw new AppError('MESSAGE_FORGOTTEN', `the message ${hash} was forgotten, and costs nothing any more`);
  throw new AppError('COST_NOT_FOUND', `${hash} is no instance, program or file that is in force here`);
}

/** What is there, and what it costs. */
function lists({
  db,
  commonDb,
  longLists,
}: Used): Pick<CostHandlers, 'listCosts' | 'getCost' | 'getConsumedCredits'> {
  const sumEverything = cached(TOTALS_MS, () => sumCosts(commonDb, EVERYTHING));
  return {
    async listCosts({ query, reply }) {
      const owner = query.address === undefined ? undefined : await readAddress(db, query.address);
      const itemHash = query.item_hash === undefined ? undefined : parseMessageHash(query.item_hash).hash;
      const filter = { owner, itemHash };
      const isAll = owner === undefined && itemHash === undefined;
      const isCredit = query.payment_type === 'credit';
      const on = longLists.askedIn(db, reply);
      const sum = () => (isAll ? sumEverything() : sumCosts(on, filter));
      const totals = isCredit ? await sum() : NOTHING;
      const { pagination: limit, page, include_details: details } = query;
      const detail = { hasParts: details === 2, isSized: isYes(query.include_size) };
      const listed = async () =>
        isCredit ? await listCosts(on, filter, { limit, offset: (page - 1) * limit }) : [];
      return {
        summary: {
          total_consumed_credits: Number(creditsOf(totals.used)),
          total_cost_hold: ZERO,
          total_cost_stream: ZERO,
          total_cost_credit: decimals(totals.rate),
          resource_count: totals.count,
        },
        filters: {
          address: query.address ?? null,
          item_hash: itemHash ?? null,
          payment_type: query.payment_type,
        },
        ...(details === 0
          ? {}
          : {
              resources: (await listed()).map((cost) => costView(cost, detail)),
              pagination_page: page,
              pagination_per_page: limit,
              pagination_total: totals.count,
              pagination_item: 'resources',
            }),
      };
    },
    getCost: async ({ params, query }) =>
      priceView(await getCost(db, params.item_hash), isYes(query.include_size)),
    async getConsumedCredits({ params }) {
      const { hash } = parseMessageHash(params.hash);
      if (!(await findMessage(db, hash)))
        throw new AppError('MESSAGE_NOT_FOUND', `there is no message ${hash} here`);
      return { item_hash: hash, ...consumedView(await readUsed(db, hash)) };
    },
  };
}

/** What would cost something if it were sent, at the prices in force. */
function estimates({ db, now }: Used): Pick<CostHandlers, 'estimateCost' | 'estimateInstanceCost'> {
  async function estimate(type: PricedType, content: unknown) {
    const { owner, needs } = await estimateNeeds(type, content, (hash) => findSizeOfFile(db, hash));
    const prices = await readPriceTable(db, Math.floor(now() / 1000));
    return priceView({ owner, needs, price: prices[needs.kind] }, true);
  }
  return {
    async estimateCost({ body: { message } }) {
      // Null arrives as an empty text.
      if (!message.item_content)
        throw new AppError('CONTENT_NOT_FOUND', 'an estimate needs the content, in message.item_content');
      return estimate(message.type, scanJsonObject(message.item_content).value);
    },
    estimateInstanceCost: ({ body }) => estimate('INSTANCE', body),
  };
}

/** A cost is a function of its message and of the prices then: all that is kept are the prices, which are read again. Where they were others, so may verdicts be. */
function recalculation({
  db,
  settings,
  resumeLine,
}: Used): Pick<CostHandlers, 'recalculateCosts' | 'recalculateCost'> {
  async function recalculate(count: () => Promise<number>) {
    await db.transaction().execute(async (trx) => {
      // As whatever changes what verdicts follow from: after the batch that is being decided.
      await lockWrites(trx);
      if (await rewritePrices(trx)) await decideCreditAgain(trx);
    });
    resumeLine();
    return {
      message: 'the prices were read again; costs follow from them and are not stored',
      recalculated_count: 0,
      total_messages: await count(),
      pricing_changes_found: await countPriceChanges(db),
    };
  }
  return {
    async recalculateCosts({ request }) {
      checkOperator(settings, request);
      return recalculate(async () => (await sumCosts(db, EVERYTHING)).count);
    },
    async recalculateCost({ params, request }) {
      checkOperator(settings, request);
      await getCost(db, params.item_hash);
      return recalculate(async () => 1);
    },
  };
}

/** What things cost, and what they would (docs/credit.md, "What things cost"). */
export const costHandlers = (rooms: Used): CostHandlers => ({
  ...lists(rooms),
  ...estimates(rooms),
  ...recalculation(rooms),
});
