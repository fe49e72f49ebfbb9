import type { Api } from '../operation.ts';
import { COUNTED_REFERENCE_API } from '../reference.ts';
import { ALLOCATIONS_API } from './allocations.ts';
import { MACHINES_API } from './machines.ts';
import { NODE_API } from './node.ts';

/** What a compute node answers beside programs, whose answers are their own, and the stream of a console, a WebSocket. */
export const COMPUTE_API = {
  ...NODE_API,
  ...ALLOCATIONS_API,
  ...MACHINES_API,
  ...COUNTED_REFERENCE_API,
} as const satisfies Api;
