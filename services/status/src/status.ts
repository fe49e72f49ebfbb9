import { CoreClient, readAnnouncedNodes } from '@skerry/client';
import {
  checkPort,
  createReach,
  type Host,
  listen,
  type RunningService,
  rateLimitsOf,
  runLoop,
  Slots,
} from '@skerry/kit';
import { checkService } from './check.ts';
import type { StatusConfig } from './config.ts';
import { type Service, Store } from './history/store.ts';
import { createApi } from './http/api.ts';
import { computeTarget, coreTarget, namedTarget, type Target } from './registry.ts';

interface CheckerOptions extends Pick<StatusConfig, 'timeoutMs' | 'concurrency' | 'allowPrivate'> {
  readonly store: Store;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Checks services, so many at a time; every result is kept as soon as it is there. */
function createChecker({ store, timeoutMs, concurrency, allowPrivate, now, signal }: CheckerOptions) {
  const slots = new Slots(concurrency);
  const [anywhere, public_] = [createReach(true), createReach(allowPrivate)];
  const checkOne = async (service: Service): Promise<void> => {
    const { url, isForeign } = service.target;
    const mayReach = isForeign ? public_ : anywhere;
    const result = await checkService(url, { mayReach, timeoutMs, signal });
    if (signal.aborted) return;
    await store.add([{ service, result: { ...result, atMs: now() } }]);
  };
  return async (services: readonly Service[]): Promise<void> => {
    await Promise.all(services.map((service) => slots.run(() => checkOne(service))));
  };
}

/** The whole status service. */
export async function startStatus(config: StatusConfig, host: Host): Promise<RunningService> {
  const { log } = host;
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const core = new CoreClient({ url: config.coreUrl, signal });
  await checkPort(config.host, config.port);
  const store = await Store.open(config.dataDir, log);
  const fixed: readonly Target[] = [coreTarget(config.coreUrl), ...config.services.map(namedTarget)];
  let announced: readonly Target[] | undefined;
  let coreFailure: string | null = null;

  async function listTargets(): Promise<readonly Target[]> {
    if (!config.announcedNodes) return fixed;
    try {
      const nodes = await readAnnouncedNodes(core, signal);
      announced = nodes.map(computeTarget).filter((target) => target !== undefined);
      coreFailure = null;
    } catch (error) {
      // The nodes that are known are checked all the same: those that were read last, or else those of an earlier process.
      coreFailure = (error as Error).message;
    }
    return [...fixed, ...(announced ?? store.computeTargets())];
  }

  const check = createChecker({ ...config, store, now: Date.now, signal });
  const api = await createApi(
    {
      services: () => store.services,
      find: (id) => store.find(id),
      reasons: () => (coreFailure === null ? [] : [`cannot read the list of compute nodes: ${coreFailure}`]),
      periodSeconds: config.checkIntervalSeconds,
      now: Date.now,
    },
    rateLimitsOf(config),
    log,
  );
  const url = await listen(api, config.host, config.port);
  const intervalMs = config.checkIntervalSeconds * 1000;
  const checks = runLoop({ name: 'checks', intervalMs, signal, log }, async () => {
    const services = await store.sync(await listTargets(), Date.now());
    if (!signal.aborted) await check(services);
  });
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([api.close(), checks]);
    },
  };
}
