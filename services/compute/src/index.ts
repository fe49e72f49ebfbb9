import type { Service } from '@skerry/kit';
import { startCompute } from './compute.ts';
import { type ComputeConfig, computeConfig } from './config.ts';

export { type ComputeConfig, computeConfig } from './config.ts';
export { prepareImage } from './images/prepare.ts';

export const computeService: Service<ComputeConfig> = {
  name: 'compute',
  summary: 'runs the virtual machines that messages ask for',
  config: computeConfig,
  start: startCompute,
};
