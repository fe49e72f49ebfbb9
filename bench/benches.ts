import type { Figures } from './measure/figures.ts';

type Run = (figures: Figures, args: readonly string[]) => Promise<void>;

/** A bench with arguments. */
interface Variant {
  readonly args: readonly string[];
  readonly measures: string;
  readonly minutes: number;
  readonly limitMinutes: number;
}

interface Bench {
  /** What it measures, in half a line. */
  readonly measures: string;
  /** About how long it takes on two cores. */
  readonly minutes: number;
  /** `all` ends it after this. */
  readonly limitMinutes: number;
  /** What it measures when it is told something, which `all` runs as well. */
  readonly also?: readonly Variant[];
  /** Its code is loaded when it is run. */
  load(): Promise<Run>;
}

/** Every bench. Its figures are ratios to a peer or a limit that is measured in the same run, as far as there is one. */
export const BENCHES: Readonly<Record<string, Bench>> = {
  verify: {
    measures: 'checking a message, beside the bare curve operation',
    minutes: 1,
    limitMinutes: 5,
    load: async () => (await import('./messages/verify.ts')).benchVerify,
  },
  vrf: {
    measures: 'random values, beside bare multiplications of libsodium',
    minutes: 1,
    limitMinutes: 5,
    load: async () => (await import('./vrf.ts')).benchVrf,
  },
  score: {
    measures: 'scoring a year of 1,000 nodes: time and memory',
    minutes: 1,
    limitMinutes: 5,
    load: async () => (await import('./score.ts')).benchScore,
  },
  schedule: {
    measures: 'planning up to 1,000,000 instances, and one change of a plan',
    minutes: 1,
    limitMinutes: 10,
    load: async () => (await import('./schedule.ts')).benchSchedule,
  },
  start: {
    measures: 'start of commands, of a core node and of a network; memory of an idle one',
    minutes: 8,
    limitMinutes: 30,
    load: async () => (await import('./start.ts')).benchStart,
  },
  ingest: {
    measures: 'taking messages in, beside signature checks and COPY',
    minutes: 3,
    limitMinutes: 15,
    load: async () => (await import('./messages/ingest.ts')).benchIngest,
  },
  processes: {
    measures: 'several processes of one core node beside one; what commits that wait for a standby cost',
    minutes: 5,
    limitMinutes: 30,
    load: async () => (await import('./processes/processes.ts')).benchProcesses,
  },
  storage: {
    measures: 'upload and download of files, beside a bare Node server',
    minutes: 5,
    limitMinutes: 20,
    load: async () => (await import('./storage/storage.ts')).benchStorage,
  },
  webhooks: {
    measures: 'events to webhooks: delay, and deliveries of a backlog beside a bare client',
    minutes: 2,
    limitMinutes: 10,
    also: [
      {
        args: ['--endpoints', '10000'],
        measures: 'the same with 10,000 endpoints, 1,000 of them dead',
        minutes: 2,
        limitMinutes: 15,
      },
    ],
    load: async () => (await import('./webhooks/webhooks.ts')).benchWebhooks,
  },
  metrics: {
    measures: 'the metrics of one node among a year of 1,000 nodes, over HTTP',
    minutes: 5,
    limitMinutes: 20,
    load: async () => (await import('./metrics.ts')).benchMetrics,
  },
  query: {
    measures: 'lists, totals and single reads with every filter, and the pages they read',
    minutes: 15,
    limitMinutes: 60,
    also: [
      {
        args: ['--messages', '10000000', '--only', 'three'],
        measures: 'three frequent values at a time in 10,000,000 messages, made anew (30 GiB)',
        minutes: 45,
        limitMinutes: 120,
      },
    ],
    load: async () => (await import('./query/query.ts')).benchQuery,
  },
  sync: {
    measures: 'core nodes in step: reconciliation, gossip, an empty node beside pg_dump | psql and a limit',
    minutes: 7,
    limitMinutes: 20,
    also: [
      {
        args: ['--only', 'transfer', '--messages', '600000'],
        measures: 'an empty node that takes 600,000 messages',
        minutes: 10,
        limitMinutes: 40,
      },
    ],
    load: async () => (await import('./sync/sync.ts')).benchSync,
  },
  indexer: {
    measures: 'indexing a chain, beside its parts alone and Ponder',
    minutes: 10,
    limitMinutes: 40,
    also: [
      {
        args: ['--queries'],
        measures: 'every filter on 10,000,000 events',
        minutes: 10,
        limitMinutes: 40,
      },
    ],
    load: async () => (await import('./indexer/indexer.ts')).benchIndexer,
  },
  gateway: {
    measures: 'the data planes of the gateway, beside HAProxy, nginx and sniproxy (as root)',
    minutes: 15,
    limitMinutes: 60,
    load: async () => (await import('./gateway/gateway.ts')).benchGateway,
  },
  compute: {
    measures: 'what a node adds to programs and to machines (as root), beside the bare runtime and QEMU',
    minutes: 20,
    limitMinutes: 60,
    load: async () => (await import('./compute/compute.ts')).benchCompute,
  },
};

/** A run of a bench, as `all` makes it. */
export interface BenchRun extends Variant {
  readonly name: string;
}

/** Every run of `all`, in its order. */
export const listRuns = (): readonly BenchRun[] =>
  Object.entries(BENCHES).flatMap(([name, { measures, minutes, limitMinutes, also = [] }]) => [
    { name, args: [], measures, minutes, limitMinutes },
    ...also.map((variant) => ({ name, ...variant })),
  ]);
