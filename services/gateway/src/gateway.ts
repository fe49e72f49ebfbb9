import { CoreClient } from '@skerry/client';
import { type Host, listen, type RunningService } from '@skerry/kit';
import type { GatewayConfig } from './config.ts';
import type { CreateDataPlane } from './dataplane/port.ts';
import { TsDataPlane } from './dataplane/ts/plane.ts';
import { createApi } from './http/api.ts';
import { createApiKeys, readKeyFile } from './http/keys.ts';
import { explainListenFailure, findListenHosts } from './listen-hosts.ts';
import { Routing } from './sync/routing.ts';
import { Saver } from './sync/saver.ts';
import { readState, writeState } from './sync/store.ts';
import { Synchroniser } from './sync/synchroniser.ts';
import { explainFailure } from './table/explain.ts';
import { InstanceTable } from './table/table.ts';

const createDataPlane: CreateDataPlane = (options) => new TsDataPlane(options);

const urlOf = (scheme: string, host: string, port: number) => {
  const name = host === '::' || host === '0.0.0.0' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}:${port}`;
};

/** Builds the gateway from bottom to top. It routes from the stored table before it has heard of the core node. */
export async function startGateway(config: GatewayConfig, { log, signal }: Host): Promise<RunningService> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const policy = { allowLocal: config.allowLocal };
  const fileKeys = config.apiKeyFile === undefined ? [] : await readKeyFile(config.apiKeyFile);
  const keys = createApiKeys([...config.apiKeys, ...fileKeys]);

  const table = new InstanceTable(config.domain);
  const plane = stack.use(
    createDataPlane({
      hosts: await findListenHosts(config.host),
      httpPort: config.httpPort,
      httpsPort: config.httpsPort,
      upstreamHttpPort: config.upstreamHttpPort,
      upstreamHttpsPort: config.upstreamHttpsPort,
      explain: (hostname, failure) => explainFailure(table, hostname, failure, config.upstreamHttpPort),
      limits: { maxConnections: config.maxConnections },
    }),
  );
  const saver = stack.use(new Saver(() => writeState(config.dataDir, routing.state()), log));
  const routing = new Routing(table, plane, () => saver.changed());
  const stored = await readState(config.dataDir, policy, log);
  if (stored) routing.load(stored);
  const ports = await plane.listen().catch((error) => Promise.reject(explainListenFailure(error)));
  log.info({ routes: table.routeCount, instances: table.instanceCount }, 'routing from the stored table');

  const source = new CoreClient({ url: config.coreUrl, signal: AbortSignal.any([signal, stop.signal]) });
  const sync = stack.use(new Synchroniser({ source, routing, policy, periodMs: config.syncPeriodMs, log }));
  const api = await createApi({ routing, keys, ports, log, sync: (acceptLoss) => sync.sync(acceptLoss) });
  stack.defer(() => api.close());
  const apiUrl = await listen(api, config.host, config.apiPort).catch((error) =>
    Promise.reject(explainListenFailure(error)),
  );
  stack.defer(() => stop.abort());
  sync.start();

  const running = stack.move();
  return {
    urls: [urlOf('http', config.host, ports.http), urlOf('https', config.host, ports.https), apiUrl],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
