import { isBeyondStart, type Reason } from '@skerry/protocol';
import { type Capacity, NO_CAPACITY } from '../host/capacity.ts';
import type { InstanceRecord } from './record/record.ts';
import { needOf } from './wanted.ts';

const GIB = 1024 ** 3;
/** Virtual cores are promised so many times over, as schedulers do; memory and disk once. */
const CPU_OVERCOMMIT = 4;

/** Two instances whose hashes begin alike would share an address. The first one stays. */
export const SAME_ADDRESS: Reason = {
  code: 'NO_CAPACITY',
  message: 'another instance of this node has the same address',
};

/** An instance that is here without a record that can be read is left alone until a core node says that it is here. */
export const UNRECORDED: Reason = {
  code: 'INTERNAL',
  message:
    "the node's record of the instance cannot be read; its disk stays, and its machine goes on if it runs",
};

/**
 * What a node promised to an instance that it has. One that can never start and has no disk, nor was found with anything, is promised
 * nothing, as schedulers count it: else files that are no images, asked for by strangers, would keep every other machine out. Pure.
 */
export function promisedTo({
  wanted,
  base,
  failure,
  isFound,
}: Pick<InstanceRecord, 'base' | 'failure' | 'isFound'> & { readonly wanted: Capacity }): Capacity {
  const isNothing = base === null && !isFound && isBeyondStart('failed', failure);
  return isNothing ? NO_CAPACITY : needOf(wanted);
}

/**
 * What a node offers while copies have so much. Less than a GiB of them has place in the reserve of its disk. Pure.
 * @param besideBytes what copies may have beside the offer
 */
export function withoutCopies(capacity: Capacity, copiesBytes: number, besideBytes: number): Capacity {
  const takenGib = Math.floor(Math.max(0, copiesBytes - besideBytes) / GIB);
  return { ...capacity, diskGib: Math.max(0, capacity.diskGib - takenGib) };
}

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
  return need <= free ? undefined : `${Math.max(0, free)} ${what} left of the ${need} needed`;
}
