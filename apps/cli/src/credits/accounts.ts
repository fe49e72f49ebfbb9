import { call } from '@skerry/client/call';
import type { CoreClient } from '@skerry/client/core-client';
import { createSigner } from '@skerry/client/signer';
import { loadKeyFile } from '@skerry/kit/files';
import { COSTS_API } from '@skerry/protocol/api/core/costs';
import { type AccountView, CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import {
  AppError,
  CREDIT_CHANNEL,
  CREDIT_POST,
  checkPricing,
  costIn,
  LIMITS,
  MIB_PER_GIB,
  PRICING_KEY,
  priceIn,
  showCredits,
} from '@skerry/protocol/forms';
import { ownerOf, readAddress } from '../address.ts';
import type { Context } from '../context.ts';
import { readJson } from '../messages/content.ts';
import { verdictFields } from '../messages/verdict.ts';
import { plainText, renderFields, renderTime } from '../output/text.ts';
import { parseTokens, renderCredits, renderHourly, renderNano, renderTokens, renderUsed } from './units.ts';

export interface BalanceOptions {
  readonly at?: number;
}
export interface HistoryOptions {
  readonly page: number;
  readonly limit: number;
  readonly kind?: 'purchase' | 'expense';
  readonly ref?: string;
  /** Unix seconds. */
  readonly since?: number;
  readonly until?: number;
}
export interface PriceOptions {
  readonly set?: string;
  /** Whether the prices hold ten minutes back. */
  readonly reachBack?: boolean;
  readonly keyFile?: string;
}
export interface GrantOptions {
  readonly ref?: string;
  readonly keyFile?: string;
}
export interface PurchaseOptions {
  readonly page: number;
  readonly limit: number;
  readonly credit?: string;
}
export interface EstimateOptions {
  readonly credits?: boolean;
  readonly credit?: string;
}

const serviceUrl = async ({ findService }: Context, given: string | undefined): Promise<string> =>
  given ?? (await findService('credit'));

/** Where nothing is left, the core node names the moment of its answer. */
function lastsField({ runs_out_at: at, credit_balance_nano: balance, time }: AccountView): [string, string] {
  if (at === null) return ['lasts until', 'never runs out'];
  const isUsedUp = BigInt(balance) <= 0n || at <= time;
  return ['lasts until', isUsedUp ? 'used up: nothing is left' : renderTime(at)];
}

export async function showBalance(
  context: Context,
  given: string | undefined,
  { at }: BalanceOptions,
): Promise<void> {
  const address = await ownerOf(context, given);
  const answer = await call(context.coreUrl, CREDITS_API.getBalance, {
    params: { address },
    query: { time: at },
  });
  const { trust } = await call(context.coreUrl, NODE_API.getInfo, {});
  const isEnforced = trust.credit_enforcement.value;
  const fields = renderFields([
    ['address', plainText(answer.address)],
    ['credits', renderNano(answer.credit_balance_nano)],
    ['per hour', renderHourly(answer.credit_rate_nano)],
    ['hold', showCredits(costIn('day', BigInt(answer.credit_rate_nano)))],
    ['available', renderCredits(answer.credit_available)],
    lastsField(answer),
    ['announced', answer.credit_state ?? 'nothing'],
    ['when used up', isEnforced ? 'instances are stopped, after a warning' : 'nothing is stopped'],
  ]);
  context.output.result(answer, fields);
}

export async function showHistory(
  context: Context,
  given: string | undefined,
  options: HistoryOptions,
): Promise<void> {
  const { page, limit, kind, ref, since, until } = options;
  const address = await ownerOf(context, given);
  const query = { page, limit, kind, ref, startDate: since, endDate: until };
  const answer = await context.reader.listCreditHistory(address, query);
  const rows = answer.credit_history.map((row) => [
    renderTime(row.message_timestamp),
    row.kind,
    renderNano(row.amount_nano),
    plainText(row.token ?? ''),
    plainText(row.origin_ref),
  ]);
  context.output.result(
    answer,
    context.output.table(['TIME', 'KIND', 'CREDITS', 'TOKEN', 'FOR'], rows, 'nothing bought or used yet'),
  );
  context.output.page(answer.pagination, 'entries');
}

export async function showCosts(
  context: Context,
  given: string | undefined,
  options: HistoryOptions,
): Promise<void> {
  const address = await ownerOf(context, given);
  const { page, limit } = options;
  const answer = await call(context.coreUrl, COSTS_API.listCosts, {
    query: { address, page, pagination: limit, include_details: 1 },
  });
  const rows = (answer.resources ?? []).map((row) => [
    row.item_hash,
    row.type,
    String(row.compute_units),
    String(row.size_mib),
    renderHourly(row.cost_credit_nano),
    renderUsed(row),
  ]);
  context.output.result(
    answer,
    context.output.table(
      ['HASH', 'TYPE', 'UNITS', 'MIB', 'PER HOUR', 'SO FAR'],
      rows,
      'nothing that costs anything',
    ),
  );
  const { resource_count: total } = answer.summary;
  context.output.page({ page, total, total_pages: Math.ceil(total / limit) }, 'things that cost something');
}

/**
 * Signs with the credit service's key where its file is named. What a key signs that the core node does not trust would be kept like any
 * message and change nothing, until the day it is trusted: it is not sent. Throws NOT_PERMITTED.
 */
async function openPublisher(context: Context, keyFile: string | undefined): Promise<CoreClient> {
  const { coreUrl } = context;
  const core = await context.openWriter(
    keyFile === undefined ? undefined : createSigner(await loadKeyFile(keyFile)),
  );
  const { trust } = await call(coreUrl, NODE_API.getInfo, {});
  const { address } = core.signer;
  if (trust.credit_publishers.value.includes(address)) return core;
  throw new AppError(
    'NOT_PERMITTED',
    `nothing was sent: ${coreUrl} does not trust ${address} to grant credits or set prices (SKERRY_CORE_CREDIT_PUBLISHERS); name a key that it trusts with --key-file`,
  );
}

/**
 * The date of prices that hold for whatever comes from now on: as far back as a message can be dated without being late. Of prices that
 * were set since, those would stay the last. Throws INVALID_PARAMETERS.
 */
async function dateBack(coreUrl: string): Promise<number> {
  const at = Math.floor(Date.now() / 1000) - LIMITS.lateSeconds;
  const { prices } = await call(coreUrl, CREDITS_API.listPrices, {});
  const last = Math.max(...Object.values(prices).map(({ since }) => since));
  if (last <= at) return at;
  throw new AppError(
    'INVALID_PARAMETERS',
    `nothing was sent: prices were set at ${renderTime(last)}, within the last ten minutes, and would stay in force; take that message back, or wait`,
  );
}

async function setPrices(
  context: Context,
  set: string,
  { keyFile, reachBack }: Pick<PriceOptions, 'keyFile' | 'reachBack'>,
): Promise<void> {
  const content = await readJson({ option: '--set', given: set }, context.stdin);
  checkPricing(content);
  const core = await openPublisher(context, keyFile);
  const sent = await core.postMessage({
    type: 'AGGREGATE',
    channel: CREDIT_CHANNEL,
    content: { key: PRICING_KEY, content },
    ...(reachBack ? { timestamp: await dateBack(context.coreUrl) } : {}),
  });
  context.output.result({ ...sent, ...verdictFields(sent) }, sent.item_hash);
}

export async function showOrSetPrices(context: Context, { set, ...options }: PriceOptions): Promise<void> {
  if (set !== undefined) return setPrices(context, set, options);
  if (options.reachBack) throw new AppError('INVALID_PARAMETERS', '--reach-back needs --set');
  const answer = await call(context.coreUrl, CREDITS_API.listPrices, {});
  const rows = Object.entries(answer.prices).map(([kind, price]) => [
    plainText(kind),
    showCredits(priceIn('hour', BigInt(price.compute_unit))),
    showCredits(priceIn('month', BigInt(price.storage_mib), MIB_PER_GIB)),
  ]);
  context.output.result(
    answer,
    context.output.table(['KIND', 'UNIT PER HOUR', 'GIB PER MONTH'], rows, 'no prices are published'),
  );
}

export async function grantCredits(
  context: Context,
  address: string,
  amount: number,
  options: GrantOptions,
): Promise<void> {
  const receiver = await readAddress(address);
  const core = await openPublisher(context, options.keyFile);
  const ref = options.ref ?? crypto.randomUUID();
  const distribution = {
    credits: [{ address: receiver, amount, ref, payment_method: 'grant' }],
  };
  const content = { type: CREDIT_POST.distribution, content: { distribution } };
  const sent = await core.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content });
  context.output.result({ ...sent, ...verdictFields(sent), ref }, sent.item_hash);
}

export async function showPurchases(
  context: Context,
  given: string | undefined,
  options: PurchaseOptions,
): Promise<void> {
  const { page, limit } = options;
  const address = given === undefined ? undefined : await readAddress(given);
  const answer = await call(await serviceUrl(context, options.credit), CREDIT_API.listPurchases, {
    query: { page, limit, address },
  });
  const rows = answer.data.map((row) => [
    renderTime(Math.floor(row.created_at / 1000)),
    row.status,
    `${renderTokens(row.in_amount, row.in_decimals)} ${plainText(row.in_currency)}`,
    renderCredits(row.prices.credit_amount),
    plainText(row.address),
    plainText(row.tx_hash),
  ]);
  context.output.result(
    answer,
    context.output.table(['TIME', 'STATUS', 'PAID', 'CREDITS', 'BY', 'TRANSACTION'], rows, 'no purchases'),
  );
  context.output.page(answer.pagination, 'purchases');
}

/** Throws UNEXPECTED_ANSWER where an estimate is of another amount than was asked about: it would be sent. */
function checkAmount(url: string, asked: string, told: string): void {
  if (told === asked) return;
  throw new AppError('UNEXPECTED_ANSWER', `${url} was asked about the amount ${asked} and told of ${told}`);
}

/** What an amount costs or buys. Only what tokens buy has a bonus. Throws UNEXPECTED_ANSWER. */
async function estimate(
  url: string,
  named: { readonly blockchain: string; readonly token: string },
  {
    amount,
    decimals,
    isCredits,
  }: { readonly amount: string; readonly decimals: number; readonly isCredits: boolean },
) {
  if (isCredits) {
    const body = { ...named, creditAmount: Number(parseTokens(amount, 0)) };
    const answer = await call(url, CREDIT_API.estimateTokens, { body });
    checkAmount(url, String(body.creditAmount), String(answer.creditAmount));
    return { ...answer, creditBonusAmount: undefined };
  }
  const body = { ...named, amount: String(parseTokens(amount, decimals)) };
  const answer = await call(url, CREDIT_API.estimateCredits, { body });
  checkAmount(url, body.amount, answer.tokenAmount);
  return answer;
}

/** @param asked a token and its chain, in words */
async function notSold(url: string, asked: string): Promise<AppError> {
  const { prices } = await call(url, CREDIT_API.listSalePrices, { query: {} });
  const sold = prices.map(({ tokenSymbol, blockchain }) => plainText(`${tokenSymbol} on ${blockchain}`));
  const what = sold.length === 0 ? 'no token does here' : `what does is ${sold.join(', ')}`;
  return new AppError('TOKEN_NOT_SOLD', `${asked} does not buy credits: ${what}`);
}

export async function showEstimate(
  context: Context,
  { chain, token, amount }: { readonly chain: string; readonly token: string; readonly amount: string },
  options: EstimateOptions,
): Promise<void> {
  const url = await serviceUrl(context, options.credit);
  const { prices } = await call(url, CREDIT_API.listSalePrices, { query: { blockchain: chain } });
  const sale = prices.find(({ tokenSymbol }) => tokenSymbol.toLowerCase() === token.toLowerCase());
  if (!sale) throw await notSold(url, `${token} on ${chain}`);
  const { decimals } = sale;
  const asked = { amount, decimals, isCredits: options.credits === true };
  const answer = await estimate(url, { blockchain: chain, token }, asked);
  const fields = renderFields([
    ['send', `${renderTokens(answer.tokenAmount, sale.decimals)} ${plainText(sale.tokenSymbol)}`],
    ['to', plainText(sale.receiver)],
    ['from', 'your own address, never an exchange: who sends gets the credits, and they cannot be moved'],
    ['contract', plainText(sale.contract)],
    ['told by', `${plainText(url)}, and proven by nothing: ask its operator before you send much`],
    ['credits', renderCredits(answer.creditAmount)],
    [
      'of which bonus',
      answer.creditBonusAmount === undefined ? undefined : renderCredits(answer.creditBonusAmount),
    ],
  ]);
  const { receiver, contract } = sale;
  context.output.result({ ...answer, receiver, contract, told_by: url }, fields);
}
