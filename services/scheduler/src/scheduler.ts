import { join } from 'node:path';
import { CoreClient, createSigner } from '@skerry/client';
import {
  createHttpServer,
  type Host,
  listen,
  loadOrCreateKeyFile,
  type RunningService,
  runLoop,
} from '@skerry/kit';
import { type AllocationContent, NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import type { SchedulerConfig } from './config.ts';
import { Controller } from './controller.ts';
import { Health } from './health.ts';
import { addRoutes } from './http/routes.ts';
import { Outbox } from './outbox.ts';
import { probeNode } from './probe.ts';
import { listRunners, RunnersTeller } from './runners.ts';
import type { Placement } from './view.ts';
import { watchNetwork } from './watch.ts';

/** Publishes decisions, each later than all before it even where the clock stands still. */
function createPublisher(core: CoreClient, now: () => number) {
  let lastMs = 0;
  return async (instanceId: string, placement: Placement): Promise<void> => {
    lastMs = Math.max(now(), lastMs + 1);
    const content: AllocationContent = {
      instance_id: instanceId,
      node_id: placement.nodeId,
      node_address: placement.nodeAddress,
      ipv6: placement.ipv6,
      reason: placement.reason,
      decided_at_ms: lastMs,
    };
    await core.postMessage({
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: { type: NETWORK_POST.allocation, content },
    });
  };
}

/** The whole scheduler, built from the bottom up. Serves as soon as it listens; says 503 until the core node was read. */
export async function startScheduler(config: SchedulerConfig, host: Host): Promise<RunningService> {
  const { log } = host;
  const signer = createSigner(await loadOrCreateKeyFile(join(config.dataDir, 'key')));
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const allowed = config.nodes.length === 0 ? undefined : new Set(config.nodes);
  const manages = (nodeAddress: string) => allowed === undefined || allowed.has(nodeAddress);

  const outbox = new Outbox({ publish: createPublisher(core, Date.now), log });
  const health = new Health({ probe: probeNode, onChange: () => controller.planSoon(), signal, log });
  const runners = new RunnersTeller({ core, now: Date.now, signal, log });
  const { cpuOvercommit, probePeriodSeconds } = config;
  const controller: Controller = new Controller({
    health,
    outbox,
    cpuOvercommit,
    manages,
    onNodes: (nodes, unreachable) => runners.offer(listRunners(nodes, unreachable, manages)),
    now: Date.now,
    signal,
    log,
  });

  const app = await createHttpServer({ log, corsMethods: ['GET', 'HEAD'] });
  addRoutes(app, {
    snapshot: () => controller.snapshot(),
    periodSeconds: probePeriodSeconds,
    status: () => ({
      snapshot: controller.hasPlan ? controller.snapshot() : undefined,
      coreFailure: controller.coreFailure,
      trouble: outbox.trouble,
      address: signer.address,
    }),
  });
  const url = await listen(app, config.host, config.port);
  log.info({ address: signer.address, core: config.coreUrl }, 'the scheduler signs with this address');

  const intervalMs = probePeriodSeconds * 1000;
  const tasks = [
    watchNetwork({ core, allowed, signal, log }, controller),
    runLoop({ name: 'probes', intervalMs, signal, log }, () => health.probeAll(controller.nodes)),
    runLoop({ name: 'checkpoint', intervalMs, signal, log }, async () => {
      try {
        await core.getInfo();
        controller.checkpoint();
      } catch (error) {
        controller.onDisconnect(error);
      }
    }),
  ];
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      outbox[Symbol.dispose]();
      await Promise.all([app.close(), ...tasks]);
    },
  };
}
