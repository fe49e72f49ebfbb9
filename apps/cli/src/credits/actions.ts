import { CoreClient, createSigner, requestJson, type Signer } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { AppError, CREDIT_CHANNEL, CREDIT_POST, normaliseAddress, PRICING_KEY } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { readJson } from '../messages/content.ts';
import { plainText, renderFields, renderTable, renderTime, shorten } from '../output/text.ts';
import { parseTokens, renderCredits, renderHourly, renderTokens } from './units.ts';

export interface BalanceOptions {
  readonly at?: number;
}
export interface HistoryOptions {
  readonly page: number;
  readonly limit: number;
  readonly kind?: string;
}
export interface PriceOptions {
  readonly set?: string;
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

const CREDIT_PORT = '4032';
const HASH_CHARS = 16;

const ask = <T>({ coreUrl }: Context, path: string) => requestJson<T>(`${coreUrl}/api/v0${path}`);

const addressOf = async (context: Context, given: string | undefined): Promise<string> =>
  encodeURIComponent(given === undefined ? (await context.loadSigner()).address : normaliseAddress(given));

/** The credit service runs beside the core node, unless it is said to be elsewhere. */
function serviceUrl({ coreUrl }: Context, given: string | undefined): string {
  if (given !== undefined) return given;
  const url = new URL(coreUrl);
  url.port = CREDIT_PORT;
  return url.origin;
}

interface Balance {
  readonly address: string;
  readonly credit_balance: number;
  readonly credit_rate_nano: string;
  readonly credit_hold: number;
  readonly credit_available: number;
  readonly credit_state: string | null;
  readonly runs_out_at: number | null;
}

export async function showBalance(
  context: Context,
  given: string | undefined,
  { at }: BalanceOptions,
): Promise<void> {
  const address = await addressOf(context, given);
  const answer = await ask<Balance>(
    context,
    `/addresses/${address}/balance${at === undefined ? '' : `?time=${at}`}`,
  );
  const fields = renderFields([
    ['address', plainText(answer.address)],
    ['credits', renderCredits(answer.credit_balance)],
    ['per hour', renderHourly(answer.credit_rate_nano)],
    ['kept back', renderCredits(answer.credit_hold)],
    ['available', renderCredits(answer.credit_available)],
    ['lasts until', answer.runs_out_at === null ? 'for ever' : renderTime(answer.runs_out_at)],
    ['announced', answer.credit_state ?? 'nothing'],
  ]);
  context.output.result(answer, fields);
}

interface HistoryAnswer {
  readonly credit_history: readonly {
    readonly kind: string;
    readonly amount: number;
    readonly origin_ref: string;
    readonly message_timestamp: number;
    readonly token: string | null;
  }[];
}

export async function showHistory(
  context: Context,
  given: string | undefined,
  options: HistoryOptions,
): Promise<void> {
  const { page, limit, kind } = options;
  const query = new URLSearchParams({ page: String(page), limit: String(limit), ...(kind ? { kind } : {}) });
  const address = await addressOf(context, given);
  const answer = await ask<HistoryAnswer>(context, `/addresses/${address}/credit_history?${query}`);
  const rows = answer.credit_history.map((row) => [
    renderTime(row.message_timestamp),
    row.kind,
    renderCredits(row.amount),
    plainText(row.token ?? ''),
    shorten(plainText(row.origin_ref), HASH_CHARS),
  ]);
  context.output.result(answer, renderTable(['TIME', 'KIND', 'CREDITS', 'TOKEN', 'FOR'], rows));
}

interface CostsAnswer {
  readonly resources: readonly {
    readonly item_hash: string;
    readonly type: string;
    readonly compute_units: number;
    readonly size_mib: number;
    readonly cost_credit_nano: string;
    readonly consumed_credits: number;
  }[];
}

export async function showCosts(
  context: Context,
  given: string | undefined,
  options: HistoryOptions,
): Promise<void> {
  const address = await addressOf(context, given);
  const answer = await ask<CostsAnswer>(
    context,
    `/costs?address=${address}&page=${options.page}&limit=${options.limit}`,
  );
  const rows = answer.resources.map((row) => [
    shorten(row.item_hash, HASH_CHARS),
    row.type,
    String(row.compute_units),
    String(row.size_mib),
    renderHourly(row.cost_credit_nano),
    renderCredits(row.consumed_credits),
  ]);
  context.output.result(answer, renderTable(['HASH', 'TYPE', 'UNITS', 'MIB', 'PER HOUR', 'SO FAR'], rows));
}

/** Signs with the credit service's key where its file is named. */
async function openPublisher(context: Context, keyFile: string | undefined): Promise<CoreClient> {
  const signer: Signer =
    keyFile === undefined ? await context.loadSigner() : createSigner(await loadOrCreateKeyFile(keyFile));
  return new CoreClient({ url: context.coreUrl, signer });
}

interface PricesAnswer {
  readonly prices: Readonly<Record<string, { readonly compute_unit: string; readonly storage_mib: string }>>;
}

export async function showOrSetPrices(context: Context, { set, keyFile }: PriceOptions): Promise<void> {
  if (set !== undefined) {
    const content = await readJson(set, context.stdin);
    const core = await openPublisher(context, keyFile);
    const sent = await core.postMessage({
      type: 'AGGREGATE',
      channel: CREDIT_CHANNEL,
      content: { key: PRICING_KEY, content },
    });
    context.output.result(sent, sent.item_hash);
    return;
  }
  const answer = await ask<PricesAnswer>(context, '/credits/prices');
  const rows = Object.entries(answer.prices).map(([kind, price]) => [
    plainText(kind),
    renderHourly(price.compute_unit),
    renderHourly(String(BigInt(price.storage_mib) * 1024n)),
  ]);
  context.output.result(answer, renderTable(['KIND', 'UNIT PER HOUR', 'GIB PER HOUR'], rows));
}

export async function grantCredits(
  context: Context,
  address: string,
  amount: number,
  options: GrantOptions,
): Promise<void> {
  const core = await openPublisher(context, options.keyFile);
  const ref = options.ref ?? crypto.randomUUID();
  const distribution = {
    credits: [{ address: normaliseAddress(address), amount, ref, payment_method: 'grant' }],
  };
  const content = { type: CREDIT_POST.distribution, content: { distribution } };
  const sent = await core.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content });
  context.output.result({ ...sent, ref }, sent.item_hash);
}

interface PaymentAnswer {
  readonly data: readonly {
    readonly status: string;
    readonly created_at: number;
    readonly address: string;
    readonly in_amount: string;
    readonly in_currency: string;
    readonly in_decimals: number;
    readonly prices: { readonly credit_amount: number };
    readonly tx_hash: string;
  }[];
}

export async function showPurchases(
  context: Context,
  given: string | undefined,
  options: PurchaseOptions,
): Promise<void> {
  const query = new URLSearchParams({
    page: String(options.page),
    limit: String(options.limit),
    ...(given === undefined ? {} : { address: given }),
  });
  const answer = await requestJson<PaymentAnswer>(
    `${serviceUrl(context, options.credit)}/api/v0/payment?${query}`,
  );
  const rows = answer.data.map((row) => [
    renderTime(Math.floor(row.created_at / 1000)),
    row.status,
    `${renderTokens(row.in_amount, row.in_decimals)} ${plainText(row.in_currency)}`,
    renderCredits(row.prices.credit_amount),
    shorten(plainText(row.address), HASH_CHARS),
    shorten(plainText(row.tx_hash), HASH_CHARS),
  ]);
  context.output.result(
    answer,
    renderTable(['TIME', 'STATUS', 'PAID', 'CREDITS', 'BY', 'TRANSACTION'], rows),
  );
}

interface SalePrice {
  readonly tokenSymbol: string;
  readonly decimals: number;
  readonly contract: string;
  readonly receiver: string;
}

interface Estimate {
  readonly tokenAmount: string;
  readonly creditAmount: number;
  readonly creditBonusAmount?: number;
}

export async function showEstimate(
  context: Context,
  { chain, token, amount }: { readonly chain: string; readonly token: string; readonly amount: string },
  options: EstimateOptions,
): Promise<void> {
  const base = `${serviceUrl(context, options.credit)}/api/v0/estimation`;
  const { prices } = await requestJson<{ prices: SalePrice[] }>(
    `${base}/prices?blockchain=${encodeURIComponent(chain)}`,
  );
  const sale = prices.find(({ tokenSymbol }) => tokenSymbol.toLowerCase() === token.toLowerCase());
  if (!sale) throw new AppError('TOKEN_NOT_SOLD', `no credits are sold for ${token} on ${chain}`);
  const asked = options.credits
    ? { path: 'credit-to-token', body: { creditAmount: Number(parseTokens(amount, 0)) } }
    : { path: 'token-to-credit', body: { amount: String(parseTokens(amount, sale.decimals)) } };
  const body = JSON.stringify({ blockchain: chain, token, ...asked.body });
  const answer = await requestJson<Estimate>(`${base}/${asked.path}`, { method: 'POST', body });
  const fields = renderFields([
    ['send', `${renderTokens(answer.tokenAmount, sale.decimals)} ${plainText(sale.tokenSymbol)}`],
    ['to', plainText(sale.receiver)],
    ['contract', plainText(sale.contract)],
    ['credits', renderCredits(answer.creditAmount)],
    [
      'of them bonus',
      answer.creditBonusAmount === undefined ? undefined : renderCredits(answer.creditBonusAmount),
    ],
  ]);
  context.output.result({ ...answer, receiver: sale.receiver, contract: sale.contract }, fields);
}
