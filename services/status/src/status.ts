import { AnnouncementReader, CoreClient } from '@skerry/client';
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
import { silentMax, Turns } from './turns.ts';

interface CheckerOptions extends Pick<StatusConfig, 'timeoutMs' | 'concurrency' | 'allowPrivate'> {
  readonly store: Store;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

type Check = (services: readonly Service[]) => Promise<void>;

/** Checks services, so many at a time; every result is kept as soon as it is there. */
function createChecker(options: CheckerOptions): Check {
  const { store, timeoutMs, concurrency, allowPrivate, now, signal } = options;
  const slots = new Slots(concurrency);
  const [anywhere, public_] = [createReach(true), createReach(allowPrivate)];
  const checkOne = async (service: Service): Promise<void> => {
    const { url, isForeign } = service.target;
    const mayReach = isForeign ? public_ : anywhere;
    const result = await checkService(url, { mayReach, timeoutMs, signal });
    if (signal.aborted) return;
    await store.add([{ service, result: { ...result, atMs: now() } }]);
  };
  return async (services) => {
    await Promise.all(services.map((service) => slots.run(() => checkOne(service))));
  };
}

/** Strangers may announce more than is read: the nodes that answer have not left. */
function withKnown(told: readonly Target[], known: readonly Target[]): readonly Target[] {
  const keys = new Set(told.map(({ key }) => key));
  return [...told, ...known.filter(({ key }) => !keys.has(key))];
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
  const announcements = new AnnouncementReader(core);
  let announced: readonly Target[] | undefined;
  let coreFailure: string | null = null;

  async function listNodes(): Promise<readonly Target[]> {
    try {
      const { nodes, isWhole } = await announcements.read(signal);
      const told = nodes.map(computeTarget).filter((target) => target !== undefined);
      announced = isWhole ? told : withKnown(told, store.answeringTargets());
      coreFailure = null;
    } catch (error) {
      // The nodes that are known are checked all the same: those that were read last, or else those of an earlier process.
      coreFailure = (error as Error).message;
    }
    return announced ?? store.computeTargets();
  }

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
  const loop = (name: string, body: (check: Check) => Promise<void>) => {
    const check = createChecker({ ...config, store, now: Date.now, signal });
    return runLoop({ name, intervalMs, signal, log }, () => body(check));
  };
  const turns = new Turns(silentMax(config));
  // Strangers who let checks wait delay none of what the operator named.
  const tasks = [
    loop('checks', async (check) => check(await store.sync(fixed, Date.now()))),
    config.announcedNodes &&
      loop('compute nodes', async (check) => {
        const services = await store.sync(await listNodes(), Date.now());
        if (!signal.aborted) await check(turns.choose(services, Date.now()));
      }),
  ];
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([api.close(), ...tasks]);
    },
  };
}
