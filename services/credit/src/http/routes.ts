import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, normaliseAddress } from '@skerry/protocol';
import Type from 'typebox';
import type { Purchases } from '../purchases.ts';
import type { Sale } from '../sales.ts';
import { creditEstimate, priceView, purchaseView, tokenEstimate } from './views.ts';

export interface RouteSource {
  readonly sales: readonly Sale[];
  readonly purchases: Purchases;
  readonly now: () => number;
  /** What is not in order, each a sentence. */
  readonly reasons: () => readonly string[];
  readonly address: string;
  readonly enforcement: boolean;
}

const Limit = Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax });

/** Two clients ask for the size of a page in two ways. */
const PaymentQuery = Type.Object({
  address: Type.Optional(Type.String({ maxLength: LIMITS.addressChars })),
  page: Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: 1 }),
  pagination: Type.Optional(Limit),
  limit: Type.Optional(Limit),
});

const Named = {
  blockchain: Type.String({ minLength: 1, maxLength: 64 }),
  token: Type.String({ minLength: 1, maxLength: 64 }),
};
const AMOUNT = '^[0-9]{1,40}$';
const TokenBody = Type.Object({ ...Named, amount: Type.String({ pattern: AMOUNT }) });
const CreditBody = Type.Object({
  ...Named,
  creditAmount: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
const PricesQuery = Type.Object({ blockchain: Type.Optional(Type.String({ maxLength: 64 })) });

/** A chain is known by its name in the sales file (`ethereum`), or by its code in messages (`ETH`). */
const isOn = (blockchain: string) => (sale: Sale) =>
  sale.network === blockchain.toLowerCase() || sale.chain === blockchain.toUpperCase();

function findSale(sales: readonly Sale[], blockchain: string, token: string): Sale {
  const sale = sales.find(
    (one) => isOn(blockchain)(one) && one.price.symbol.toLowerCase() === token.toLowerCase(),
  );
  if (sale) return sale;
  const known = sales.map(({ network, price }) => `${price.symbol} on ${network}`).join(', ');
  throw new AppError(
    'TOKEN_NOT_SOLD',
    `${token} on ${blockchain} is not taken here: ${known === '' ? 'no chain is configured' : known}`,
  );
}

/** An amount in JSON has to be a number that JSON can hold. */
function fitting<T extends { readonly creditAmount: bigint; readonly creditBonusAmount?: bigint }>(
  estimate: T,
) {
  if (estimate.creditAmount > BigInt(Number.MAX_SAFE_INTEGER))
    throw new AppError('INVALID_PARAMETERS', 'body.amount buys more credits than one purchase can have');
  return {
    ...estimate,
    creditAmount: Number(estimate.creditAmount),
    ...(estimate.creditBonusAmount === undefined
      ? {}
      : { creditBonusAmount: Number(estimate.creditBonusAmount) }),
  };
}

/** Where paths begin: deployed clients write the version, the specification's table does not. */
const PREFIXES = ['', '/api/v0'];

/** Reading is for everyone and needs no credential. */
export function addRoutes(app: HttpServer, source: RouteSource): void {
  for (const prefix of PREFIXES) addVersioned(app, prefix, source);
  app.get('/status', () => {
    const reasons = source.reasons();
    return {
      status: reasons.length === 0 ? 'ok' : 'degraded',
      reasons,
      address: source.address,
      enforcement: source.enforcement,
      sales: source.sales.map(({ network, chain, price, contract, receiver }) => ({
        network,
        chain,
        token: price.symbol,
        contract,
        receiver,
      })),
      purchases: { total: source.purchases.size, waiting: source.purchases.waiting },
    };
  });
}

function addVersioned(app: HttpServer, prefix: string, { sales, purchases, now }: RouteSource): void {
  app.get(`${prefix}/payment`, { schema: { querystring: PaymentQuery } }, ({ query }) => {
    const { page } = query;
    const perPage = query.pagination ?? query.limit ?? LIMITS.pageSizeDefault;
    const address = query.address === undefined ? undefined : normaliseAddress(query.address);
    const { records, total } = purchases.list(address, page, perPage);
    const pagination = { total, page, per_page: perPage, total_pages: Math.ceil(total / perPage) };
    return { data: records.map(purchaseView), pagination };
  });

  app.post(`${prefix}/estimation/token-to-credit`, { schema: { body: TokenBody } }, ({ body }) => {
    const { price } = findSale(sales, body.blockchain, body.token);
    return fitting(tokenEstimate(BigInt(body.amount), price, now()));
  });

  app.post(`${prefix}/estimation/credit-to-token`, { schema: { body: CreditBody } }, ({ body }) => {
    const { price } = findSale(sales, body.blockchain, body.token);
    return fitting(creditEstimate(BigInt(body.creditAmount), price, now()));
  });

  app.get(`${prefix}/estimation/prices`, { schema: { querystring: PricesQuery } }, ({ query }) => {
    const { blockchain } = query;
    const asked = blockchain === undefined ? sales : sales.filter(isOn(blockchain));
    return {
      prices: asked.map((sale) => ({
        blockchain: sale.network,
        chain: sale.chain,
        contract: sale.contract,
        receiver: sale.receiver,
        ...priceView(sale.price),
      })),
    };
  });
}
