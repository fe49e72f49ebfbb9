import { readFile } from 'node:fs/promises';
import { createHttpServer, type HttpServer, type Logger, type RateLimitOptions } from '@skerry/kit';
import { readDiskUsage } from '../host/capacity.ts';
import { listGpus, parseCpuinfo } from '../host/processor.ts';
import { type AllocationSources, addAllocationRoutes } from './allocations.ts';
import { addDomainRoutes, type DomainSources } from './domains.ts';
import { addLogStream, type LogStreamSources } from './log-stream.ts';
import { addMachineRoutes, type MachineRoutes } from './machines.ts';
import { addStatusRoutes, type StatusSources } from './status.ts';
import { capabilityView, type Execution, executionsV1, executionsV2, usageView } from './views.ts';

export interface RouteSources
  extends MachineRoutes,
    AllocationSources,
    StatusSources,
    DomainSources,
    LogStreamSources {
  readonly log: Logger;
  readonly limits: RateLimitOptions;
  readonly executions: () => Execution[];
  readonly hostIpv4: () => string | undefined;
  /** What other rooms answer. */
  readonly addRoutes: (app: HttpServer) => Promise<void>;
}

/** The node's HTTP interface: what monitors, front-ends, schedulers and owners ask a compute node. */
export async function createComputeServer(sources: RouteSources): Promise<HttpServer> {
  const { log, limits, dataDir, executions, hostIpv4, addRoutes } = sources;
  const app = await createHttpServer({
    ...{ log, limits },
    corsMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  });
  const readProcessor = async () => parseCpuinfo(await readFile('/proc/cpuinfo', 'utf8').catch(() => ''));
  // Measurers take the 401 as the sign of life of a compute node.
  app.get('/about/login', async (_request, reply) => reply.status(401).send({ success: false }));
  app.get('/about/usage/system', async () =>
    usageView(await readDiskUsage(dataDir), await readProcessor(), await listGpus(), Date.now()),
  );
  app.get('/about/capability', async () => capabilityView(await readProcessor()));
  app.get('/about/executions/list', async () => executionsV1(executions()));
  app.get('/v2/about/executions/list', async () => executionsV2(executions(), hostIpv4()));
  addStatusRoutes(app, sources);
  addAllocationRoutes(app, sources);
  // In a scope of its own: what is signed is kept beside what it means.
  await app.register(async (scope) => addMachineRoutes(scope as HttpServer, sources));
  addLogStream(app, sources);
  addDomainRoutes(app, sources);
  await addRoutes(app);
  return app;
}
