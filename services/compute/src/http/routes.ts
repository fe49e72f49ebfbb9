import { readFile } from 'node:fs/promises';
import {
  answer,
  createHttpServer,
  expectAll,
  frontHandlers,
  type Handlers,
  type HttpServer,
  type Logger,
  type RateLimitOptions,
  referenceHandlers,
  serveAll,
  withExamples,
  writeDocument,
} from '@skerry/kit';
import { COMPUTE_API } from '@skerry/protocol/api/compute/index';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { USAGE_API } from '@skerry/protocol/api/compute/usage';
import { FRONT_API, REFERENCE_API } from '@skerry/protocol/api/reference';
import { readDiskUsage } from '../host/capacity.ts';
import { listGpus, parseCpuinfo } from '../host/processor.ts';
import { instancesDisk } from '../instances/record/record.ts';
import type { Programs } from '../programs/programs.ts';
import { type UsageRoutes, usageHandlers } from '../usage/routes.ts';
import { type AllocationSources, addAllocationRoutes } from './allocations.ts';
import { type DomainSources, domainHandlers } from './domains.ts';
import { addLogStream, LOG_STREAM_PATHS, type LogStreamSources } from './log-stream.ts';
import { addMachineRoutes, type MachineRoutes } from './machines.ts';
import { type StatusSources, statusHandlers } from './status.ts';
import { capabilityView, type Execution, executionsV1, executionsV2, usageView } from './views.ts';

const INFO = {
  title: 'Skerry compute node',
  description: `What a compute node is and runs, and what owners ask of their instances there.
Every error is \`{error, status: "error", code}\`.`,
};

export interface RouteSources
  extends MachineRoutes,
    AllocationSources,
    StatusSources,
    DomainSources,
    LogStreamSources,
    Pick<UsageRoutes, 'readers'> {
  readonly programs: Pick<Programs, 'logs' | 'readUsage' | 'readTotal'> | undefined;
  readonly log: Logger;
  readonly limits: RateLimitOptions;
  readonly executions: () => Execution[];
  readonly hostIpv4: () => string | undefined;
  /** What other rooms answer. */
  readonly addRoutes: (app: HttpServer) => Promise<void>;
}

/** For whoever asks for the document: a node that is not asked for it does without. */
const readExamples = async () => (await import('@skerry/protocol/api/examples/compute')).COMPUTE_EXAMPLES;

const readProcessor = async () => parseCpuinfo(await readFile('/proc/cpuinfo', 'utf8').catch(() => ''));

function nodeHandlers(sources: RouteSources): Handlers<typeof NODE_API> {
  const { dataDir, executions, hostIpv4 } = sources;
  return {
    getLogin: () =>
      answer(401, {
        success: false,
        status: 'error',
        error: 'nobody logs in here: owners and schedulers sign each request',
        code: 'SIGNATURE_REQUIRED',
      }),
    getUsage: async () =>
      usageView(
        await readDiskUsage(await instancesDisk(dataDir)),
        await readProcessor(),
        await listGpus(),
        Date.now(),
      ),
    getCapability: async () => capabilityView(await readProcessor()),
    listRunningExecutions: () => executionsV1(executions()),
    listExecutions: () => executionsV2(executions(), hostIpv4()),
    ...statusHandlers(sources),
    ...domainHandlers(sources),
  };
}

/** The node's HTTP interface: what monitors, front-ends, schedulers and owners ask a compute node. */
export async function createComputeServer(sources: RouteSources): Promise<HttpServer> {
  const { log, limits, addRoutes } = sources;
  const app = await createHttpServer({
    ...{ log, limits },
    corsMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    socketPaths: LOG_STREAM_PATHS,
  });
  expectAll(app, COMPUTE_API);
  serveAll(app, NODE_API, nodeHandlers(sources));
  serveAll(app, USAGE_API, usageHandlers(sources));
  serveAll(app, FRONT_API, frontHandlers(COMPUTE_API, INFO));
  serveAll(app, REFERENCE_API, referenceHandlers(COMPUTE_API, INFO, limits.perMinute, readExamples));
  addAllocationRoutes(app, sources);
  // In a scope of its own: what is signed is kept beside what it means.
  await app.register(async (scope) => addMachineRoutes(scope as HttpServer, sources));
  addLogStream(app, sources);
  await addRoutes(app);
  return app;
}

/** The OpenAPI 3.1 document of a compute node. @param perMinute its rates */
export const describeRoutes = async (perMinute: RateLimitOptions['perMinute']) =>
  writeDocument(withExamples(COMPUTE_API, await readExamples()), INFO, perMinute);
