import { LIMITS } from '../limits.ts';

/** How large machines and programs may be: what schemas demand, and what forms say before anything is signed. */

export const MIB_PER_GIB = 1_024;

export interface SizeRange {
  readonly minimum: number;
  readonly maximum: number;
}

export const INSTANCE_SIZES = {
  cpu: { minimum: 1, maximum: LIMITS.instanceCpuMax },
  /** MiB. */
  memory: { minimum: LIMITS.instanceMemoryMibMin, maximum: LIMITS.instanceMemoryMibMax },
  /** GiB. */
  disk: { minimum: 1, maximum: LIMITS.instanceDiskGibMax },
} as const satisfies Readonly<Record<string, SizeRange>>;

export const PROGRAM_SIZES = {
  /** MiB. */
  memory: { minimum: LIMITS.programMemoryMibMin, maximum: LIMITS.programMemoryMibMax },
  /** Seconds. */
  timeout: { minimum: 1, maximum: LIMITS.programTimeoutSecondsMax },
} as const satisfies Readonly<Record<string, SizeRange>>;
