import { readFile } from 'node:fs/promises';
import { createHttpServer, type HttpServer, type Logger } from '@skerry/kit';
import { readDiskUsage } from '../host/capacity.ts';
import {
  configView,
  type Execution,
  executionsV1,
  executionsV2,
  type NodeFacts,
  usageView,
} from './views.ts';

export interface RouteSources {
  readonly log: Logger;
  readonly dataDir: string;
  readonly executions: () => Execution[];
  readonly hostIpv4: () => string | undefined;
  readonly facts: () => Promise<NodeFacts>;
}

/** The node's HTTP interface: what monitors, front-ends and people ask a compute node. */
export async function createComputeServer(sources: RouteSources): Promise<HttpServer> {
  const { log, dataDir, executions, hostIpv4, facts } = sources;
  const app = await createHttpServer({ log, corsMethods: ['GET'] });
  // Measurers take the 401 as the sign of life of a compute node.
  app.get('/about/login', async (_request, reply) => reply.status(401).send({ success: false }));
  app.get('/about/usage/system', async () =>
    usageView(
      await readDiskUsage(dataDir),
      await readFile('/proc/cpuinfo', 'utf8').catch(() => ''),
      Date.now(),
    ),
  );
  app.get('/about/executions/list', async () => executionsV1(executions()));
  app.get('/v2/about/executions/list', async () => executionsV2(executions(), hostIpv4()));
  app.get('/status/config', async () => configView(await facts()));
  return app;
}
