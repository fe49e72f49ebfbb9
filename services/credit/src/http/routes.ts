import {
  createHttpServer,
  expectAll,
  frontHandlers,
  type Handlers,
  type HttpServer,
  type Logger,
  type RateLimitOptions,
  rateLimitsOf,
  readConfig,
  referenceHandlers,
  serveAll,
  withExamples,
  writeDocument,
} from '@skerry/kit';
import { AppError, LIMITS, parseAccountAddress } from '@skerry/protocol';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { creditConfig } from '../config.ts';
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
  readonly limits: RateLimitOptions;
}

const INFO = {
  title: 'Skerry credit service',
  description: `What was bought, and what credits cost. Reading needs no credential.
Every error is \`{error, status: "error", code}\`.`,
};

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
    `${token} on ${blockchain} is not accepted: ${known === '' ? 'no chain is configured' : known}`,
  );
}

type CreditHandlers = Handlers<typeof CREDIT_API>;

const statusOf =
  ({ sales, purchases, reasons, address, enforcement }: RouteSource): CreditHandlers['getCreditStatus'] =>
  () => {
    const why = [...reasons()];
    return {
      status: why.length === 0 ? 'ok' : 'degraded',
      reasons: why,
      address,
      enforcement,
      sales: sales.map(({ network, chain, price, contract, receiver }) => ({
        network,
        chain,
        token: price.symbol,
        contract,
        receiver,
      })),
      purchases: { total: purchases.size, waiting: purchases.waiting },
    };
  };

/** For whoever asks for the document: a service that is not asked for it does without. */
const readExamples = async () =>
  (await import('@skerry/protocol/api/examples/credit')).CREDIT_SERVICE_EXAMPLES;

function handlersOf(source: RouteSource): CreditHandlers {
  const { sales, purchases, now } = source;
  const listPurchases: CreditHandlers['listPurchases'] = ({ query }) => {
    const { page, pagination: size, limit } = query;
    if (size !== undefined && limit !== undefined)
      throw new AppError(
        'INVALID_PARAMETERS',
        'query.limit and query.pagination mean the same; send one of them',
      );
    const perPage = size ?? limit ?? LIMITS.pageSizeDefault;
    const address = query.address === undefined ? undefined : parseAccountAddress(query.address);
    const { records, total } = purchases.list(address, page, perPage);
    const pagination = { total, page, per_page: perPage, total_pages: Math.ceil(total / perPage) };
    return { data: records.map(purchaseView), pagination };
  };
  const estimateCredits: CreditHandlers['estimateCredits'] = ({ body }) =>
    tokenEstimate(BigInt(body.amount), findSale(sales, body.blockchain, body.token).price, now());
  const estimateTokens: CreditHandlers['estimateTokens'] = ({ body }) =>
    creditEstimate(BigInt(body.creditAmount), findSale(sales, body.blockchain, body.token).price, now());
  const listSalePrices: CreditHandlers['listSalePrices'] = ({ query: { blockchain } }) => {
    const asked = blockchain === undefined ? sales : sales.filter(isOn(blockchain));
    return { prices: asked.map(priceView) };
  };
  return {
    listPurchases,
    estimateCredits,
    estimateTokens,
    listSalePrices,
    listPurchasesUnversioned: listPurchases,
    estimateCreditsUnversioned: estimateCredits,
    estimateTokensUnversioned: estimateTokens,
    listSalePricesUnversioned: listSalePrices,
    getCreditStatus: statusOf(source),
    ...frontHandlers(CREDIT_API, INFO),
    ...referenceHandlers(CREDIT_API, INFO, source.limits.perMinute, readExamples),
  };
}

/** The credit service's HTTP door. */
export async function createApi(source: RouteSource, log: Logger): Promise<HttpServer> {
  const app = await createHttpServer({ log, limits: source.limits, corsMethods: ['GET', 'HEAD', 'POST'] });
  expectAll(app, CREDIT_API);
  serveAll(app, CREDIT_API, handlersOf(source));
  return app;
}

/** The OpenAPI 3.1 document of the credit service with the default settings. */
export const describeApi = async () =>
  writeDocument(
    withExamples(CREDIT_API, await readExamples()),
    INFO,
    rateLimitsOf(readConfig(creditConfig, {})).perMinute,
  );
