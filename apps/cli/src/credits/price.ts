import { call } from '@skerry/client/call';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { costIn, instanceNeeds, rateOf, showCredits } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { ASIDE } from '../network/gateway.ts';

export interface InstanceSize {
  readonly cpu: number;
  /** MiB. */
  readonly memory: number;
  /** GiB. */
  readonly disk: number;
}

/** What an instance of a size costs, and what follows when nobody pays. @param rate billionths of a credit per second */
export function renderPrice(rate: bigint, isEnforced: boolean): string {
  if (rate === 0n) return 'costs nothing: no price is published';
  const [hourly, daily] = [costIn('hour', rate), costIn('day', rate)].map(showCredits);
  const otherwise = isEnforced
    ? 'it is refused, and later stopped, without credit for a day'
    : 'nothing is stopped when your credit is used up';
  return `costs ${hourly} credits an hour, ${daily} a day until it is deleted, also while it is stopped or waits for a node; ${otherwise}`;
}

/** Told before anything is signed; a core node that does not say what things cost holds nobody up. */
export async function tellPrice({ coreUrl, output }: Context, size: InstanceSize): Promise<void> {
  if (output.json) return;
  try {
    const [{ prices }, { trust }] = await Promise.all([
      call(coreUrl, CREDITS_API.listPrices, {}, ASIDE),
      call(coreUrl, NODE_API.getInfo, {}, ASIDE),
    ]);
    const price = prices.instance;
    if (price === undefined) return;
    const rate = rateOf(instanceNeeds(size), {
      computeUnit: BigInt(price.compute_unit),
      storageMib: BigInt(price.storage_mib),
    });
    output.note(renderPrice(rate, trust.credit_enforcement.value));
  } catch {
    // It is created all the same.
  }
}
