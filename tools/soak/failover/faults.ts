import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@skerry/kit/testing/until';
import type { Cluster } from './cluster.ts';
import type { Cores } from './cores.ts';
import type { Leads } from './leads.ts';
import { ANSWERING } from './node.ts';
import { NAMES, type Name } from './page.ts';

/** A machine is away for so long. */
const AWAY_MS = 12_000;
const FROZEN_MS = 15_000;
/** A rewind takes seconds. */
const LOOK_MS = 50;

export interface Place {
  readonly cluster: Cluster;
  readonly cores: Cores;
  readonly leads: Leads;
  /** A whole number below another. */
  readonly random: (below: number) => number;
}

/** Something that breaks, and comes back. Resolves when it has come back; the cluster may still have to catch up. */
export interface Fault {
  readonly name: string;
  /** What stands still meanwhile: the database for everybody, a process that answers, who leads, or nothing. */
  readonly takes: 'database' | 'process' | 'lead' | 'nothing';
  readonly play: (place: Place) => Promise<void>;
}

const oneOf = (random: Place['random']): Name => NAMES[random(NAMES.length)]!;

async function freeze({ cluster }: Place, pids: readonly number[]): Promise<void> {
  cluster.signal(pids, 'SIGSTOP');
  await delay(FROZEN_MS);
  cluster.signal(pids, 'SIGCONT');
}

async function breakServer(cluster: Cluster, name: Name): Promise<void> {
  await cluster.killServer(name);
  await delay(AWAY_MS);
  cluster.patroni.get(name)!.start();
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill -9 of the primary server',
    takes: 'database',
    play: async ({ cluster }) => breakServer(cluster, await cluster.primary()),
  },
  {
    name: 'SIGSTOP of the primary server',
    takes: 'database',
    play: async (place) => {
      const { cluster } = place;
      const name = await cluster.primary();
      await freeze(place, [cluster.patroni.get(name)!.pid, ...cluster.postgres(name)]);
    },
  },
  {
    name: 'kill -9 of the primary PostgreSQL only',
    takes: 'database',
    play: async ({ cluster }) =>
      cluster.signal(cluster.postgres(await cluster.primary()).slice(0, 1), 'SIGKILL'),
  },
  {
    name: 'kill -9 of the new primary server while the old one is rewound',
    takes: 'database',
    play: async ({ cluster }) => {
      const old = await cluster.primary();
      cluster.signal(cluster.postgres(old).slice(0, 1), 'SIGKILL');
      const [primary] = await until(
        'the old primary is rewound, or needs it not',
        async () => [await cluster.primary(), cluster.isRewound(old), await cluster.isWhole()] as const,
        ([name, isRewound, isWhole]) => name !== old && (isRewound || isWhole),
        { everyMs: LOOK_MS },
      );
      await breakServer(cluster, primary);
    },
  },
  {
    name: 'kill -9 of the primary Patroni only',
    takes: 'database',
    play: async ({ cluster }) => {
      const name = await cluster.primary();
      await cluster.patroni.get(name)!.kill();
      await delay(AWAY_MS);
      cluster.patroni.get(name)!.start();
    },
  },
  {
    name: 'kill -9 of a core process that answers',
    takes: 'process',
    play: async ({ cores, random }) => {
      const index = ANSWERING[random(ANSWERING.length)]!;
      await cores.kill(index);
      await cores.start(index);
    },
  },
  {
    name: 'SIGSTOP of a core process that answers',
    takes: 'process',
    play: (place) => freeze(place, [place.cores.pidOf(ANSWERING[place.random(ANSWERING.length)]!)]),
  },
  {
    name: 'kill -9 of the core process that leads',
    takes: 'lead',
    play: async ({ cores, leads }) => {
      const index = await leads.find();
      await cores.kill(index);
      await leads.find((other) => other !== index);
      await cores.start(index);
    },
  },
  {
    name: 'SIGSTOP of the core process that leads',
    takes: 'lead',
    play: async (place) => freeze(place, [place.cores.pidOf(await place.leads.find())]),
  },
  {
    name: 'kill -9 of one of etcd',
    takes: 'nothing',
    play: async ({ cluster, random }) => {
      const etcd = cluster.etcd.get(oneOf(random))!;
      await etcd.kill();
      await delay(AWAY_MS);
      etcd.start();
    },
  },
  {
    name: 'SIGSTOP of one of etcd',
    takes: 'nothing',
    play: (place) => freeze(place, [place.cluster.etcd.get(oneOf(place.random))!.pid]),
  },
];
