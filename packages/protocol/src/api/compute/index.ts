import type { Api } from '../operation.ts';
import { FRONT_API, REFERENCE_API } from '../reference.ts';
import { ALLOCATIONS_API } from './allocations.ts';
import { CONSOLE_API, MACHINES_API } from './machines.ts';
import { NODE_API, PROOF_API } from './node.ts';
import { PROGRAMS_API } from './programs.ts';
import { USAGE_API } from './usage.ts';

/** What a compute node answers. */
export const COMPUTE_API = {
  ...NODE_API,
  ...PROOF_API,
  ...PROGRAMS_API,
  ...ALLOCATIONS_API,
  ...MACHINES_API,
  ...CONSOLE_API,
  ...USAGE_API,
  ...FRONT_API,
  ...REFERENCE_API,
} as const satisfies Api;
