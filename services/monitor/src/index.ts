import type { Service } from '@skerry/kit';
import { type MonitorConfig, monitorConfig } from './config.ts';
import { monitorKeeping } from './keeping.ts';
import { startMonitor } from './monitor.ts';

/** Measurement: every node once an hour, at a moment that nobody can foretell. Known by the key in `<dataDir>/key`. */
export const monitorService: Service<MonitorConfig> = {
  name: 'monitor',
  summary: 'measures the nodes of the network and publishes what it saw',
  config: monitorConfig,
  keeping: monitorKeeping,
  start: startMonitor,
};
