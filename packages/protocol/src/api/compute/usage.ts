import { Phase } from '../../content/network.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, NO_PARAMETERS, orNull, text } from '../operation.ts';

/** What each guest takes of a compute node, for its operator. All that is counted only grows until what counts it is made anew. */

const Count = Type.Integer({ minimum: 0 });

export const GuestUsageView = Type.Object(
  {
    kind: Type.Enum(['instance', 'program']),
    item_hash: Type.String(),
    owner: orNull(Type.String(), { description: 'null where it is not known yet' }),
    host_name: orNull(Type.String(), {
      description: 'the four words of an instance; null of a program',
    }),
    phase: orNull(Phase, { description: 'of an instance; null of a program' }),
    since: orNull(Type.String({ format: 'date-time' }), {
      description: 'when its machine, or the oldest of its sandboxes, was started; null where none runs',
    }),
    cpu: Type.Object({
      seconds: orNull(Type.Number({ minimum: 0 }), {
        description: 'processor time since then; null where none runs, or the kernel does not tell it',
      }),
      granted: Type.Number({ minimum: 0, description: 'virtual cores' }),
    }),
    memory: Type.Object({
      bytes: orNull(Count, {
        description:
          "resident memory of an instance's process, anonymous and shared, without files such as its code; of a program what its control group counts; null where none runs",
      }),
      granted_bytes: Count,
    }),
    disk: orNull(
      Type.Object({
        bytes: Type.Integer({
          minimum: 0,
          description: 'what its disk and volumes take, snapshots included',
        }),
        granted_bytes: Count,
      }),
      { description: 'null of a program' },
    ),
    network: orNull(
      Type.Object({
        in_bytes: Type.Integer({ minimum: 0, description: 'to the guest' }),
        out_bytes: Type.Integer({ minimum: 0, description: 'from the guest' }),
        in_packets: Count,
        out_packets: Count,
      }),
      {
        description:
          "since the instance's network interface was made, which outlives restarts; null where it has none, and of a program",
      },
    ),
  },
  { title: 'GuestUsage' },
);
export type GuestUsageView = Static<typeof GuestUsageView>;

export const GuestUsageListView = Type.Object(
  {
    read_at: Type.String({ format: 'date-time' }),
    guests: Type.Array(GuestUsageView),
  },
  { title: 'GuestUsageList' },
);
export type GuestUsageListView = Static<typeof GuestUsageListView>;

const reader = { method: 'GET', rateClass: 'general', errors: ['NOT_PERMITTED'] } as const;

/** What a compute node tells only those whom its operator lets read it (`SKERRY_COMPUTE_USAGE_READERS`). */
export const USAGE_API = {
  listGuestUsage: {
    ...reader,
    path: '/about/usage/guests',
    summary: 'List what each instance and each program in memory uses; for clients that may read it',
    query: NO_PARAMETERS,
    answers: { 200: GuestUsageListView },
  },
  getComputeMetrics: {
    ...reader,
    path: '/metrics',
    summary: 'Get metrics in the Prometheus format; for clients that may read them',
    tag: 'about',
    answers: { 200: text('the Prometheus text format, version 0.0.4') },
  },
} as const satisfies Api;
