import { call } from '@skerry/client';
import {
  explainListenFailure,
  type Host,
  type Logger,
  pause,
  type RunningService,
  urlOfListener,
} from '@skerry/kit';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import type { AnswerOf } from '@skerry/protocol/api/operation';
import type { GatewayConfig } from './config.ts';
import { createPlane } from './create-plane.ts';
import { tellQuic } from './dataplane/choose.ts';
import type { DataPlane, Explanation, Route, RouteFailure } from './dataplane/port.ts';
import { Saver } from './sync/saver.ts';
import { readDomains, writeDomains } from './sync/store.ts';

/** How soon a domain that was attached or detached counts. */
const LOOK_EVERY_MS = 2_000;
/** Of the look before it listens: who comes while a node takes longer is told the last list. */
const FIRST_LOOK_MS = 2_000;
/** Of one compute node; a longer list is not believed. */
const ROUTES_MAX = 100_000;

function routesOf(list: AnswerOf<typeof NODE_API.listDomainRoutes>): Route[] {
  if (list.length > ROUTES_MAX) throw new Error(`the node has more than ${ROUTES_MAX} custom domains`);
  return list.map(({ name, ipv6, proxy_protocol: proxyHeader = false }) => ({
    ...{ hostname: name.toLowerCase(), ipv6 },
    ...(proxyHeader ? { proxyHeader } : {}),
  }));
}

const explain = (hostname: string, failure: RouteFailure): Explanation =>
  failure === 'not_routed'
    ? { code: 'HOSTNAME_NOT_FOUND', message: `No instance on this node has the name ${hostname}.` }
    : { code: 'INSTANCE_UNREACHABLE', message: `The instance of ${hostname} does not answer.` };

/** The custom domains of a node, as far as they are known: from its last answer, also over restarts. */
class NodeDomains implements AsyncDisposable {
  readonly #nodeUrl: string;
  readonly #dataDir: string;
  readonly #plane: DataPlane;
  readonly #log: Logger;
  readonly #saver: Saver;
  #routes: readonly Route[] = [];
  #isAway = false;

  constructor({ dataDir }: GatewayConfig, nodeUrl: string, plane: DataPlane, log: Logger) {
    this.#nodeUrl = nodeUrl;
    this.#dataDir = dataDir;
    this.#plane = plane;
    this.#log = log;
    this.#saver = new Saver(() => writeDomains(dataDir, this.#routes), log);
  }

  async load(): Promise<void> {
    const stored = await readDomains(this.#dataDir, this.#log);
    if (stored) this.#apply(stored);
  }

  #apply(routes: readonly Route[]): void {
    this.#routes = routes;
    this.#plane.replaceTable(routes);
  }

  /** Asks the node once. While it does not answer, the last routes stay. */
  async look(signal: AbortSignal, timeoutMs?: number): Promise<void> {
    try {
      const options = { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
      const routes = routesOf(await call(this.#nodeUrl, NODE_API.listDomainRoutes, {}, options));
      if (JSON.stringify(routes) !== JSON.stringify(this.#routes)) {
        this.#apply(routes);
        this.#saver.changed();
        this.#log.info({ routes: routes.length }, 'the custom domains of the node changed');
      }
      this.#isAway = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!this.#isAway)
        this.#log.warn({ err: error }, 'the compute node does not return its domains; keeping the last ones');
      this.#isAway = true;
    }
  }

  async follow(signal: AbortSignal): Promise<void> {
    while (await pause(LOOK_EVERY_MS, signal)) await this.look(signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#saver[Symbol.asyncDispose]();
  }
}

/**
 * The same data plane beside a compute node: it carries the custom domains of that node's instances, TLS by server name
 * and HTTP by Host. It routes as it did last before the node answers.
 */
export async function startNodeFront(
  config: GatewayConfig,
  nodeUrl: string,
  host: Host,
): Promise<RunningService> {
  const { log } = host;
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const { plane } = await createPlane(config, host, stack, explain);
  const domains = stack.use(new NodeDomains(config, nodeUrl, plane, log));
  await domains.load();
  await domains.look(signal, FIRST_LOOK_MS);
  const ports = await plane.listen().catch((error) => Promise.reject(explainListenFailure(error)));
  tellQuic(config.quic, ports, log);
  const following = domains.follow(signal);
  stack.defer(async () => {
    stop.abort();
    await following;
  });
  const running = stack.move();
  return {
    urls: [urlOfListener('http', config.host, ports.http), urlOfListener('https', config.host, ports.https)],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
