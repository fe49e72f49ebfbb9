import {
  creditsOf,
  formatDecimal,
  type Price,
  type ResourceKind,
  type ResourceNeeds,
  rateOf,
  ratePartsOf,
} from '@skerry/protocol';
import type { CostPart, CostView, PriceView } from '@skerry/protocol/api/core/costs';
import type { Cost } from '../../state/credits/costs.ts';

const NANO_PLACES = 9;
/** How deployed clients read a cost: credits per second with so many decimals. */
const COST_PLACES = 18;

export function decimals(nano: bigint): string {
  const [whole, fraction = ''] = formatDecimal(nano, NANO_PLACES).split('.');
  return `${whole}.${fraction.padEnd(COST_PLACES, '0')}`;
}
export const ZERO = decimals(0n);

const ratesOf = (nano: bigint) => ({ cost_hold: ZERO, cost_stream: ZERO, cost_credit: decimals(nano) });

const STORAGE_TYPE = {
  instance: 'EXECUTION_INSTANCE_VOLUME_ROOTFS',
  program: 'EXECUTION_VOLUME_PERSISTENT',
  storage: 'STORAGE',
} as const satisfies Readonly<Record<ResourceKind, CostPart['type']>>;

/** What a cost is made of: its parts add up to it. */
function partsOf(needs: ResourceNeeds, price: Price, isSized: boolean): CostPart[] {
  const { compute, storage } = ratePartsOf(needs, price);
  const partOf = (type: CostPart['type'], nano: bigint, mib: number | null): CostPart => ({
    type,
    name: type,
    ...ratesOf(nano),
    size_mib: isSized ? mib : null,
  });
  return [
    ...(needs.units > 0 ? [partOf('EXECUTION', compute, null)] : []),
    ...(needs.mib > 0 ? [partOf(STORAGE_TYPE[needs.kind], storage, needs.mib)] : []),
  ];
}

/** Which of a cost's particulars are asked for. */
export interface CostDetail {
  readonly hasParts: boolean;
  readonly isSized: boolean;
}

/** What something has cost so far: a small file has cost less than a credit for weeks. @param used billionths of a credit */
export const consumedView = (used: bigint) => ({
  consumed_credits: Number(creditsOf(used)),
  consumed_credits_nano: String(used),
});

export function costView(cost: Cost, { hasParts, isSized }: CostDetail): CostView {
  const { itemHash, owner, needs, price, used, created } = cost;
  const rate = rateOf(needs, price);
  return {
    item_hash: itemHash,
    owner,
    type: needs.kind,
    payment_type: 'credit',
    compute_units: needs.units,
    size_mib: needs.mib,
    ...ratesOf(rate),
    cost_credit_nano: String(rate),
    ...consumedView(used),
    created: Math.floor(created),
    ...(hasParts ? { detail: partsOf(needs, price, isSized) } : {}),
  };
}

/** What something costs that an owner has, or might have. */
export const priceView = (
  { owner, needs, price }: Pick<Cost, 'owner' | 'needs' | 'price'>,
  isSized: boolean,
): PriceView => ({
  required_tokens: 0,
  payment_type: 'credit',
  cost: decimals(rateOf(needs, price)),
  detail: partsOf(needs, price, isSized),
  charged_address: owner,
});
