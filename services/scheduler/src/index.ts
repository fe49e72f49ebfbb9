import type { Service } from '@skerry/kit';
import { type SchedulerConfig, schedulerConfig } from './config.ts';
import { schedulerKeeping } from './keeping.ts';
import { startScheduler } from './scheduler.ts';

export { describeApi } from './http/api.ts';

/** Placement: which node runs which virtual machine, and why. Known to the network by the key in `<dataDir>/key`. */
export const schedulerService: Service<SchedulerConfig> = {
  name: 'scheduler',
  summary: 'decides which compute node runs which instance',
  config: schedulerConfig,
  keeping: schedulerKeeping,
  start: startScheduler,
};
