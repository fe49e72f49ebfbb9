import type { Service } from '@skerry/kit';
import { type StatusConfig, statusConfig } from './config.ts';
import { statusKeeping } from './keeping.ts';
import { startStatus } from './status.ts';

export { describeApi } from './http/api.ts';

/** Network status: whether every service answers, now, over the last week and day by day for a year. */
export const statusService: Service<StatusConfig> = {
  name: 'status',
  summary: 'checks every service of the network and shows how they have been doing',
  config: statusConfig,
  keeping: statusKeeping,
  start: startStatus,
};
