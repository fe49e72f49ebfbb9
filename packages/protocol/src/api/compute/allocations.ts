import { HASH64_PATTERN } from '../../network-form/item-hash.ts';
import { Type } from '../../type.ts';
import type { Api } from '../operation.ts';

const Hash = Type.String({ pattern: HASH64_PATTERN });
const Hashes = Type.Optional(Type.Union([Type.Array(Hash, { maxItems: 4_096 }), Type.Null()]));
const Allocations = Type.Object({
  persistent_vms: Hashes,
  instances: Hashes,
  on_demand_vms: Type.Optional(Type.Unknown()),
  jobs: Type.Optional(Type.Unknown()),
});

const failures = {
  failing: Type.Array(Type.String()),
  errors: Type.Record(Type.String(), Type.String(), { description: 'why, by instance' }),
};
const AllocatedView = Type.Object(
  {
    success: Type.Boolean(),
    successful: Type.Array(Type.String()),
    ...failures,
    stopped: Type.Array(Type.String()),
  },
  { title: 'Allocated' },
);
const NotifiedView = Type.Object(
  { success: Type.Boolean(), successful: Type.Boolean(), ...failures },
  { title: 'Notified' },
);

/** How schedulers and owners point a node to its instances. */
export const ALLOCATIONS_API = {
  setAllocations: {
    method: 'POST',
    path: '/control/allocations',
    summary:
      'Look after these instances (signed by a scheduler, header Authorization); 207 and 503 where some or all failed',
    tag: 'allocations',
    rateClass: 'general',
    body: { kind: 'json', schema: Allocations },
    answers: { 200: AllocatedView, 207: AllocatedView, 503: AllocatedView },
    errors: ['SIGNATURE_REQUIRED', 'INVALID_SIGNATURE', 'NOT_PERMITTED', 'REQUEST_REPEATED'],
    deployed: {
      differs: 'a scheduler that the operator trusts signs the request, instead of sending a secret token',
    },
  },
  updateMachine: {
    method: 'POST',
    path: '/control/machine/:ref/update',
    summary: "Reread one of this node's instances from the core node now, with its ports and domains",
    tag: 'allocations',
    rateClass: 'general',
    params: Type.Object({
      ref: Type.String({ pattern: HASH64_PATTERN, description: 'item hash of the INSTANCE' }),
    }),
    answers: { 200: Type.Object({ status: Type.Literal('updated'), vm_hash: Hash }) },
    errors: ['INSTANCE_NOT_FOUND', 'INSTANCE_NOT_READY', 'UPSTREAM_UNAVAILABLE'],
  },
  notifyAllocation: {
    method: 'POST',
    path: '/control/allocation/notify',
    summary: 'Read an instance from the core node now; 503 if the node cannot take it',
    tag: 'allocations',
    rateClass: 'general',
    body: { kind: 'json', schema: Type.Object({ instance: Hash }) },
    answers: { 200: NotifiedView, 503: NotifiedView },
    errors: [],
    deployed: {
      differs: 'the node looks the instance up at its core node, and answers 503 if it cannot take it',
    },
  },
} as const satisfies Api;
