import { defineConfig, type Setting, settings } from '@skerry/kit';
import { parseEvmAddress } from '@skerry/protocol';

export interface SchedulerConfig {
  host: string;
  port: number;
  coreUrl: string;
  dataDir: string;
  probePeriodSeconds: number;
  cpuOvercommit: number;
  nodes: readonly string[];
}

const list = settings.list(
  [],
  'addresses of the compute nodes to place on; all that announce themselves if empty',
);

const nodeList: Setting<readonly string[]> = {
  ...list,
  parse: (text) => list.parse(text).map(parseEvmAddress),
};

export const schedulerConfig = defineConfig<SchedulerConfig>('SKERRY_SCHEDULER', {
  host: settings.text('localhost', 'address to listen on; "::" for every address'),
  port: settings.port(4030, 'HTTP port'),
  coreUrl: settings.url('http://localhost:4024', 'the core node to read from and publish to'),
  dataDir: settings.directory('data', 'scheduler', 'where the key is'),
  probePeriodSeconds: settings.integer(1, 3600, 10, 'seconds between two probes of a compute node'),
  cpuOvercommit: settings.integer(1, 64, 4, 'virtual cores to promise for each core of a compute node'),
  nodes: nodeList,
});
