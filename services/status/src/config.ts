import { type ConfigOf, defineConfig, generalRateSettings, type Setting, settings } from '@skerry/kit';
import { parseNamedService } from './registry.ts';

const list = settings.list([], 'services to check besides the announced nodes: NAME=URL, comma-separated');
const named: Setting<readonly { name: string; url: string }[]> = {
  ...list,
  fallback: [],
  parse: (text) => list.parse(text).map(parseNamedService),
};

/** Settings of the status service. */
export const statusConfig = defineConfig(
  'SKERRY_STATUS',
  {
    host: settings.host(),
    port: settings.port(4031, 'HTTP port'),
    coreUrl: settings.coreUrl('the core node to read from; it is checked too'),
    dataDir: settings.directory('data', 'status', 'directory for the check results'),
    services: named,
    announcedNodes: settings.flag(true, 'whether to check announced compute nodes'),
    checkIntervalSeconds: settings.integer(1, 3_600, 60, 'seconds between two checks of a service'),
    timeoutMs: settings.integer(100, 60_000, 5_000, 'time limit of a check, in ms'),
    concurrency: settings.integer(1, 1_000, 64, 'services to check in parallel'),
    allowPrivate: settings.flag(false, 'whether to contact compute nodes at private addresses; for devnets'),
    ...generalRateSettings(),
  },
  { periodSeconds: 'checkIntervalSeconds' },
);

export type StatusConfig = ConfigOf<typeof statusConfig>;
