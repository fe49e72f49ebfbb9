import { defineConfig, type GeneralRateConfig, generalRateSettings, settings } from '@skerry/kit';
import { parseEvmAddress } from '@skerry/protocol';
import { TRUST_LEVELS, type TrustLevel } from './planning/trust.ts';

export interface SchedulerConfig extends GeneralRateConfig {
  host: string;
  port: number;
  coreUrl: string;
  dataDir: string;
  probeIntervalSeconds: number;
  cpuOvercommit: number;
  nodes: readonly string[];
  trust: TrustLevel;
  allowPrivate: boolean;
  drain: readonly string[];
  graceSeconds: number;
  publicPrefixes: boolean;
  scoringPublishers: readonly string[];
  scoreMinPercent: number;
  peers: readonly string[];
  takeoverSeconds: number;
}

export const schedulerConfig = defineConfig<SchedulerConfig>(
  'SKERRY_SCHEDULER',
  {
    host: settings.host(),
    port: settings.port(4030, 'HTTP port'),
    coreUrl: settings.coreUrl('the core node to read from and publish to'),
    dataDir: settings.directory('data', 'scheduler', 'directory for the key'),
    probeIntervalSeconds: settings.integer(1, 3600, 10, 'seconds between two probes of a compute node'),
    cpuOvercommit: settings.integer(1, 64, 4, 'virtual cores to promise per core of a compute node'),
    nodes: settings.listOf(
      parseEvmAddress,
      [],
      "addresses of the operator's own compute nodes: all their announced capacity counts, and they may be at private addresses",
    ),
    trust: settings.choice(
      TRUST_LEVELS,
      'measured',
      'which compute nodes get instances and programs: listed ones; also those with a score above zero, as much as they earned (measured); or all that prove their key and network',
    ),
    allowPrivate: settings.flag(
      false,
      'whether to use unlisted compute nodes at private addresses and with private networks; for devnets',
    ),
    drain: settings.listOf(
      parseEvmAddress,
      [],
      'addresses of compute nodes to drain: they get nothing new, and their instances move away',
    ),
    graceSeconds: settings.integer(
      0,
      7 * 86_400,
      900,
      'how long a compute node may be unreachable before its instances move, in seconds',
    ),
    publicPrefixes: settings.flag(false, 'whether to use only compute nodes with a public IPv6 network'),
    scoringPublishers: settings.listOf(
      parseEvmAddress,
      [],
      'addresses whose published scores count; without them every node has the same score',
    ),
    scoreMinPercent: settings.integer(
      0,
      100,
      0,
      'lowest score of a compute node that gets new instances, in percent',
    ),
    peers: settings.urls([], "URLs of the network's other schedulers: one leads, another takes over"),
    takeoverSeconds: settings.integer(
      2,
      3_600,
      10,
      'how long the leading scheduler may be silent before another takes over, in seconds',
    ),
    ...generalRateSettings(
      'clients without limits: addresses and ranges, comma-separated; "none" for none, but for the other schedulers',
    ),
  },
  { scorePublishers: 'scoringPublishers' },
);
