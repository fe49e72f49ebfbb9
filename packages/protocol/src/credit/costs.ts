import { MIB_PER_GIB } from '../content/sizes.ts';
import type { Price, ResourceKind } from './prices.ts';

/**
 * What things cost: whole billionths of a credit per second, a pure function of a message's content and of the prices
 * at the message's time. A change of prices never changes what is already there.
 */

/** What a resource is charged for. */
export interface ResourceNeeds {
  readonly kind: ResourceKind;
  /** Compute units. */
  readonly units: number;
  /** MiB of storage that no compute unit brings along. */
  readonly mib: number;
}

/** What one compute unit has. */
export const COMPUTE_UNIT = { vcpus: 1, memoryMib: 2048, diskMib: 20_480 } as const;

export const MIB_BYTES = 1024 * 1024;

/** So much is kept back for everything that an owner has: the cost of a day. */
export const HOLD_SECONDS = 86_400n;

const unitsOf = (vcpus: number, memoryMib: number) =>
  Math.max(Math.ceil(vcpus / COMPUTE_UNIT.vcpus), Math.ceil(memoryMib / COMPUTE_UNIT.memoryMib));

export function instanceNeeds(instance: {
  readonly cpu: number;
  /** MiB. */
  readonly memory: number;
  /** GiB. */
  readonly disk: number;
}): ResourceNeeds {
  const units = unitsOf(instance.cpu, instance.memory);
  const mib = Math.max(0, instance.disk * MIB_PER_GIB - units * COMPUTE_UNIT.diskMib);
  return { kind: 'instance', units, mib };
}

/** A program that may reach the internet counts twice. */
export function programNeeds(program: {
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly internet: boolean;
}): ResourceNeeds {
  const units = unitsOf(program.vcpus, program.memoryMib) * (program.internet ? 2 : 1);
  return { kind: 'program', units, mib: 0 };
}

/** Every file counts a MiB at least. */
export const storageNeeds = (sizeBytes: number): ResourceNeeds => ({
  kind: 'storage',
  units: 0,
  mib: Math.max(1, Math.ceil(sizeBytes / MIB_BYTES)),
});

type Counted = Pick<ResourceNeeds, 'units' | 'mib'>;

/** What a rate is made of, billionths of a credit per second. */
export const ratePartsOf = ({ units, mib }: Counted, price: Price) => ({
  compute: BigInt(units) * price.computeUnit,
  storage: BigInt(mib) * price.storageMib,
});

/** Billionths of a credit per second. */
export function rateOf(needs: Counted, price: Price): bigint {
  const { compute, storage } = ratePartsOf(needs, price);
  return compute + storage;
}

/** What a time costs, [from, to) in whole Unix seconds. Two times that meet cost what both together do. */
export const chargeOf = (rateNano: bigint, from: number, to: number): bigint =>
  rateNano * BigInt(Math.max(0, to - from));

export const holdOf = (rateNano: bigint): bigint => rateNano * HOLD_SECONDS;

/**
 * The part of a period in which a resource is charged: from its creation, and before it not at all. What is there before the time that
 * its sender wrote is charged from when it was seen: dates may be some minutes ahead.
 *
 * @param seenSeconds when it is known to be there
 */
export const chargedFrom = (createdSeconds: number, periodStart: number, seenSeconds: number): number =>
  Math.max(Math.floor(Math.min(createdSeconds, seenSeconds)), periodStart);

/** How long a charge is for: machines by the hour, files by the day, from midnight of 1970 on. */
export const CHARGE_PERIOD_SECONDS: Readonly<Record<ResourceKind, number>> = {
  instance: 3_600,
  program: 3_600,
  storage: 86_400,
};

/** The period that a moment lies in. @param seconds Unix seconds */
export function periodOf(
  kind: ResourceKind,
  seconds: number,
): { readonly start: number; readonly end: number } {
  const length = CHARGE_PERIOD_SECONDS[kind];
  const start = Math.floor(seconds / length) * length;
  return { start, end: start + length };
}
