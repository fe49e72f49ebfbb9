import { AppError } from '../errors.ts';

/** What costs something. */
export const RESOURCE_KINDS = ['instance', 'program', 'storage'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

/** The aggregate of a credit publisher in which prices stand; a field for each kind of resource. */
export const PRICING_KEY = 'net-credit-pricing';

/** Billionths of a credit per second. */
export interface Price {
  readonly computeUnit: bigint;
  /** For each MiB of storage that no compute unit brings along. */
  readonly storageMib: bigint;
}

export type PriceTable = Readonly<Record<ResourceKind, Price>>;

/** What holds where no price was published: 14,250 credits an hour for a unit of an instance, about 20,000 a month for a GiB. */
export const DEFAULT_PRICES: PriceTable = {
  instance: { computeUnit: 3_958_333_333n, storageMib: 7_535n },
  program: { computeUnit: 791_666_667n, storageMib: 7_535n },
  storage: { computeUnit: 0n, storageMib: 7_535n },
};

/** One message that publishes prices. */
export interface PriceElement {
  /** Unix seconds. */
  readonly time: number;
  readonly itemHash: string;
  /** The content of the aggregate's element, as written. */
  readonly content: unknown;
}

/** The prices from a time on, that second included. */
export interface PriceStep {
  readonly from: number;
  readonly prices: PriceTable;
}

const PRICE_MAX = Number.MAX_SAFE_INTEGER;

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

const isPrice = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= PRICE_MAX;

const PRICE_FIELDS: readonly string[] = ['compute_unit', 'storage_mib'];

/**
 * What somebody is about to publish: of what has not the form of a price nothing would count, and nobody would say so.
 * @throws AppError INVALID_CONTENT
 */
export function checkPricing(content: unknown): void {
  const refuse = (why: string) => new AppError('INVALID_CONTENT', why);
  const isObject = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const kinds = isObject(content) ? Object.entries(content) : [];
  if (kinds.length === 0)
    throw refuse(`prices are an object with ${RESOURCE_KINDS.join(', ')}, or some of them`);
  for (const [kind, fields] of kinds) {
    if (!(RESOURCE_KINDS as readonly string[]).includes(kind))
      throw refuse(`nothing called "${kind}" has a price: there is ${RESOURCE_KINDS.join(', ')}`);
    const prices = isObject(fields) ? Object.entries(fields) : [];
    if (prices.length === 0) throw refuse(`${kind} has ${PRICE_FIELDS.join(', ')}, or one of them`);
    for (const [name, price] of prices) {
      if (!PRICE_FIELDS.includes(name))
        throw refuse(`${kind} has no price "${name}": there is ${PRICE_FIELDS.join(', ')}`);
      if (!isPrice(price)) throw refuse(`${kind}.${name} must be a whole number from 0 to ${PRICE_MAX}`);
    }
  }
}

/** What has not the form of a price leaves the one before in force. */
function applyPrices(prices: PriceTable, content: unknown): PriceTable {
  const priced = RESOURCE_KINDS.map((kind) => {
    const field = memberOf(content, kind);
    const [unit, mib] = [memberOf(field, 'compute_unit'), memberOf(field, 'storage_mib')];
    const before = prices[kind];
    return [
      kind,
      {
        computeUnit: isPrice(unit) ? BigInt(unit) : before.computeUnit,
        storageMib: isPrice(mib) ? BigInt(mib) : before.storageMib,
      },
    ] as const;
  });
  return Object.fromEntries(priced) as unknown as PriceTable;
}

const isBefore = (a: PriceElement, b: PriceElement) =>
  a.time !== b.time ? a.time - b.time : a.itemHash < b.itemHash ? -1 : a.itemHash > b.itemHash ? 1 : 0;

/**
 * The history of prices that follows from these elements, in whatever order they are given. It begins with the default
 * prices at 0; of several elements within one second the one with the greatest hash has the last word.
 */
export function listPriceSteps(elements: readonly PriceElement[]): PriceStep[] {
  const steps = new Map<number, PriceTable>([[0, DEFAULT_PRICES]]);
  let prices: PriceTable = DEFAULT_PRICES;
  for (const element of [...elements].sort(isBefore)) {
    prices = applyPrices(prices, element.content);
    steps.set(Math.floor(element.time), prices);
  }
  return [...steps].map(([from, table]) => ({ from, prices: table }));
}

/** The prices that hold at a time. @param steps by time, from 0 */
export function pricesAt(steps: readonly PriceStep[], time: number): PriceTable {
  return steps.findLast(({ from }) => from <= time)?.prices ?? DEFAULT_PRICES;
}
