import type { Reason } from '@skerry/protocol';
import type { Capacity } from '../host/capacity.ts';

/** Virtual cores are promised so many times over, as schedulers do; memory and disk once. */
export const CPU_OVERCOMMIT = 4;

/**
 * Whether a node takes one more instance: null, or why not. An instance that is stopped keeps what was promised to it.
 * Pure.
 * @param capacity what the node offers
 * @param promised what its instances were promised
 */
export function decideAdmission(
  capacity: Capacity,
  promised: readonly Capacity[],
  need: Capacity,
): Reason | null {
  const sum = (of: (one: Capacity) => number) => promised.reduce((total, one) => total + of(one), 0);
  const lacks = [
    lack('virtual cores', need.cpu, capacity.cpu * CPU_OVERCOMMIT - sum(({ cpu }) => cpu)),
    lack('MiB of memory', need.memoryMib, capacity.memoryMib - sum(({ memoryMib }) => memoryMib)),
    lack('GiB of disk', need.diskGib, capacity.diskGib - sum(({ diskGib }) => diskGib)),
  ].filter((one) => one !== undefined);
  return lacks.length === 0 ? null : { code: 'NO_CAPACITY', message: `this node has ${lacks.join(', ')}` };
}

function lack(what: string, need: number, free: number): string | undefined {
  return need <= free ? undefined : `${Math.max(0, free)} ${what} left of the ${need} asked for`;
}
