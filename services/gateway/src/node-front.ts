import { call } from '@skerry/client';
import { explainListenFailure, type Host, pause, type RunningService, urlOfListener } from '@skerry/kit';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import type { AnswerOf } from '@skerry/protocol/api/operation';
import type { GatewayConfig } from './config.ts';
import { createDataPlane, tellQuic } from './dataplane/choose.ts';
import type { Route } from './dataplane/port.ts';
import { findListenHosts } from './listen-hosts.ts';

/** How soon a domain that was attached or detached counts. */
const LOOK_EVERY_MS = 2_000;
/** Of one compute node; a longer list is not believed. */
const ROUTES_MAX = 100_000;

function routesOf(list: AnswerOf<typeof NODE_API.listDomainRoutes>): Route[] {
  if (list.length > ROUTES_MAX) throw new Error(`the node has more than ${ROUTES_MAX} custom domains`);
  return list.map(({ name, ipv6 }) => ({ hostname: name.toLowerCase(), ipv6 }));
}

/**
 * The same data plane beside a compute node: it carries the custom domains of that node's instances, TLS by server name
 * and HTTP by Host. While the node does not answer, the last routes stay.
 */
export async function startNodeFront(
  config: GatewayConfig,
  nodeUrl: string,
  host: Host,
): Promise<RunningService> {
  const { log, signal } = host;
  const stop = new AbortController();
  const { plane } = await createDataPlane(
    {
      hosts: await findListenHosts(config.host),
      httpPort: config.httpPort,
      httpsPort: config.httpsPort,
      upstreamHttpPort: config.upstreamHttpPort,
      upstreamHttpsPort: config.upstreamHttpsPort,
      explain: (hostname, failure) =>
        failure === 'not_routed'
          ? { code: 'HOSTNAME_NOT_FOUND', message: `No instance on this node has the name ${hostname}.` }
          : { code: 'INSTANCE_UNREACHABLE', message: `The instance of ${hostname} does not answer.` },
      limits: {
        maxConnections: config.maxConnections,
        maxPerClient: config.maxConnectionsPerClient,
        maxPerInstance: config.maxConnectionsPerInstance,
      },
      sharePort: config.sharePort,
      quic: config.quic,
    },
    {
      ...config,
      kind: config.dataPlane,
      log,
      signal,
      onReplaced: () => host.replaced?.('another gateway has taken over'),
    },
  );
  const ports = await plane.listen().catch((error) => Promise.reject(explainListenFailure(error)));
  tellQuic(config.quic, ports, log);
  const following = follow(
    plane.replaceTable.bind(plane),
    nodeUrl,
    AbortSignal.any([signal, stop.signal]),
    log,
  );
  return {
    urls: [urlOfListener('http', config.host, ports.http), urlOfListener('https', config.host, ports.https)],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await following;
      await plane.drain(config.drainMs);
    },
  };
}

async function follow(
  apply: (routes: Route[]) => void,
  nodeUrl: string,
  signal: AbortSignal,
  log: Host['log'],
): Promise<void> {
  let last = '';
  let isAway = false;
  do {
    try {
      const routes = routesOf(await call(nodeUrl, NODE_API.listDomainRoutes, {}, { signal }));
      const text = JSON.stringify(routes);
      if (text !== last) {
        apply(routes);
        log.info({ routes: routes.length }, 'the custom domains of the node changed');
      }
      last = text;
      isAway = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!isAway)
        log.warn({ err: error }, 'the compute node does not return its domains; keeping the last ones');
      isAway = true;
    }
  } while (await pause(LOOK_EVERY_MS, signal));
}
