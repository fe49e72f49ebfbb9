import { rateLimitsOf, readConfig, type Service } from '@skerry/kit';
import { startCompute } from './compute.ts';
import { type ComputeConfig, computeConfig } from './config.ts';
import { describeRoutes } from './http/routes.ts';
import { computeKeeping } from './keeping.ts';

export { computeConfig } from './config.ts';
export { clearLeftGroups } from './groups/left-groups.ts';
export { examineHost, type HostExamination, holdProofAddress } from './host/examine.ts';
export { prepareImage } from './images/prepare.ts';
export { clearLeftNetwork, findLeftMachines } from './instances/left-machines.ts';
export { type PoweredOff, powerOffMachines } from './instances/power-off.ts';
export { findAnnouncedUrlFault } from './publish/announced-url.ts';

/** The OpenAPI 3.1 document of a compute node with the default settings. */
export const describeApi = () => describeRoutes(rateLimitsOf(readConfig(computeConfig, {})).perMinute);

export const computeService: Service<ComputeConfig> = {
  name: 'compute',
  summary: 'runs the virtual machines that messages ask for',
  config: computeConfig,
  keeping: computeKeeping,
  start: startCompute,
};
