import { CoreClient } from '@skerry/client';
import {
  checkPort,
  explainListenFailure,
  type Host,
  type Logger,
  listen,
  type RunningService,
  rateLimitsOf,
  urlOfListener,
} from '@skerry/kit';
import type { GatewayConfig } from './config.ts';
import { createPlane } from './create-plane.ts';
import { tellQuic } from './dataplane/choose.ts';
import { createApi } from './http/api.ts';
import { type ApiKeys, createApiKeys, readKeyFile, watchKeyFile } from './http/keys.ts';
import { startNodeFront } from './node-front.ts';
import { Routing } from './sync/routing.ts';
import { Saver } from './sync/saver.ts';
import { loadId, readState, writeState } from './sync/store.ts';
import { Synchroniser } from './sync/synchroniser.ts';
import { explainFailure } from './table/explain.ts';
import { InstanceTable } from './table/table.ts';

/** A gateway that is being replaced shares the API's port with its successor. Throws PORT_IN_USE where somebody else has it. */
const checkApiPort = ({ host, apiHost = host, apiPort, replace }: GatewayConfig): Promise<void> =>
  checkPort(apiHost, apiPort, replace);

/** The keys of the settings and of the key file, which is followed as it changes. */
async function openKeys({ apiKeys, apiKeyFile }: GatewayConfig, log: Logger): Promise<ApiKeys & Disposable> {
  const keys = createApiKeys([
    ...apiKeys,
    ...(apiKeyFile === undefined ? [] : await readKeyFile(apiKeyFile)),
  ]);
  if (apiKeyFile === undefined) return { ...keys, [Symbol.dispose]: () => {} };
  const watch = watchKeyFile(
    apiKeyFile,
    (found) => {
      keys.replace([...apiKeys, ...found]);
      log.info({ keys: apiKeys.length + found.length }, 'the API keys were read again');
    },
    (error) => log.error({ err: error }, 'the API keys stay as they were'),
  );
  return { ...keys, [Symbol.dispose]: () => watch[Symbol.dispose]() };
}

/** Builds the gateway from bottom to top. It routes from the stored table before it has heard of the core node. */
export async function startGateway(config: GatewayConfig, host: Host): Promise<RunningService> {
  if (config.nodeUrl !== undefined) return startNodeFront(config, config.nodeUrl, host);
  const { log, signal } = host;
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const policy = { allowLocal: config.allowLocal, allowPrivate: config.allowPrivate };
  const keys = stack.use(await openKeys(config, log));
  const table = new InstanceTable(config.domain);
  const created = await createPlane(config, host, stack, (hostname, failure) =>
    explainFailure(table, hostname, failure, config.upstreamHttpPort),
  );
  const { plane, name: planeName, refusals } = created;
  const saver = stack.use(new Saver(() => writeState(config.dataDir, routing.state()), log));
  const routing = new Routing(table, plane, () => saver.changed());
  const stored = await readState(config.dataDir, policy, log);
  if (stored) routing.load(stored);
  // What can fail does so before the listeners of a gateway that is being replaced are taken.
  await checkApiPort(config);
  const ports = await plane.listen().catch((error) => Promise.reject(explainListenFailure(error)));
  const { routeCount: routes, instanceCount: instances } = table;
  log.info({ routes, instances, dataPlane: planeName }, 'routing from the stored table');
  tellQuic(config.quic, ports, log);

  const source = new CoreClient({ url: config.coreUrl, signal: AbortSignal.any([signal, stop.signal]) });
  const sync = stack.use(new Synchroniser({ source, routing, policy, periodMs: config.syncIntervalMs, log }));
  const api = await createApi({
    routing,
    keys,
    ports,
    log,
    limits: rateLimitsOf(config),
    sync: (acceptLoss) => sync.sync(acceptLoss),
    plane,
    refusals,
    core: source,
    now: Date.now,
    planeName,
    id: await loadId(config.dataDir, log),
    instancePorts: {
      tcp: [config.upstreamHttpsPort, config.upstreamHttpPort],
      quic: ports.noQuic === null ? config.upstreamHttpsPort : undefined,
    },
  });
  stack.defer(() => api.close());
  const apiUrl = await listen(api, config.apiHost ?? config.host, config.apiPort, true);
  stack.defer(() => stop.abort());
  sync.start();

  const running = stack.move();
  return {
    urls: [
      urlOfListener('http', config.host, ports.http),
      urlOfListener('https', config.host, ports.https),
      apiUrl,
    ],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
