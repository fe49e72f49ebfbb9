import type { Service } from '@skerry/kit';
import { type CreditConfig, creditConfig } from './config.ts';
import { creditKeeping } from './keeping.ts';
import { startCredit } from './service.ts';

export { describeApi } from './http/routes.ts';

/** Credit: purchases on chains become credits, and what is used is charged. Known to the network by the key in `<dataDir>/key`. */
export const creditService: Service<CreditConfig> = {
  name: 'credit',
  summary: 'turns purchases on chains into credits, and charges what is used',
  config: creditConfig,
  keeping: creditKeeping,
  start: startCredit,
};
