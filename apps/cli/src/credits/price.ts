import { call } from '@skerry/client/call';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { costIn, type ResourceNeeds, rateOf, showCredits } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { ASIDE } from '../network/gateway.ts';

/** What is created and costs by the hour. */
type Kind = 'instance' | 'program';

const IDLE: Readonly<Record<Kind, string>> = {
  instance: 'also while it is stopped or waits for a node',
  program: 'also while nobody calls it',
};

/** Without credit for a day, where that is asked for. */
const UNPAID: Readonly<Record<Kind, string>> = {
  instance: 'it is refused, and later stopped, without credit for a day',
  program: 'it is refused without credit for a day',
};

/** What an instance or a program costs, and what follows when nobody pays. @param rate billionths of a credit per second */
export function renderPrice(kind: Kind, rate: bigint, isEnforced: boolean): string {
  if (rate === 0n) return 'costs nothing: no price is published';
  const [hourly, daily] = [costIn('hour', rate), costIn('day', rate)].map(showCredits);
  const otherwise = isEnforced ? UNPAID[kind] : 'nothing is stopped when your credit is used up';
  return `costs ${hourly} credits an hour, ${daily} a day until it is deleted, ${IDLE[kind]}; ${otherwise}`;
}

/** Told before anything is signed; a core node that does not say what things cost holds nobody up. */
export async function tellPrice(
  { coreUrl, output }: Context,
  { kind, ...needs }: ResourceNeeds & { readonly kind: Kind },
): Promise<void> {
  if (output.json) return;
  try {
    const [{ prices }, { trust }] = await Promise.all([
      call(coreUrl, CREDITS_API.listPrices, {}, ASIDE),
      call(coreUrl, NODE_API.getInfo, {}, ASIDE),
    ]);
    const price = prices[kind];
    if (price === undefined) return;
    const rate = rateOf(needs, {
      computeUnit: BigInt(price.compute_unit),
      storageMib: BigInt(price.storage_mib),
    });
    output.note(renderPrice(kind, rate, trust.credit_enforcement.value));
  } catch {
    // It is created all the same.
  }
}
