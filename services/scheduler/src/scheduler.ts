import { join } from 'node:path';
import { CoreClient, createSigner } from '@skerry/client';
import {
  type Asker,
  checkPort,
  createAsker,
  createReach,
  exemptHosts,
  type Host,
  type Logger,
  listen,
  loadOrCreateKeyFile,
  openSince,
  type RunningService,
  rateLimitsOf,
  runLoop,
} from '@skerry/kit';
import { type AllocationContent, NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import type { SchedulerConfig } from './config.ts';
import { Controller } from './controller.ts';
import type { ControllerOptions } from './controller-options.ts';
import { Dating, readLatestMs } from './dating.ts';
import { Health } from './health.ts';
import { createApi } from './http/api.ts';
import type { RouteSource } from './http/routes.ts';
import { noteProblems, type StatusInput } from './http/status.ts';
import { Leadership } from './leadership.ts';
import { Outbox } from './outbox.ts';
import { refusePrefix } from './planning/prefix.ts';
import { probeNode } from './probe.ts';
import { listRunners, RunnersPublisher } from './runners.ts';
import { readScores } from './scores.ts';
import type { Node, Placement } from './view.ts';
import { admitNodes, type WatchOptions, watchNetwork } from './watch.ts';

/** Publishes decisions. */
const createPublisher =
  (core: CoreClient, dating: Dating) =>
  (instanceId: string, placement: Placement, signal: AbortSignal): Promise<void> =>
    dating.date(async (decidedAtMs) => {
      const content: AllocationContent = {
        instance_id: instanceId,
        node_id: placement.nodeId,
        node_address: placement.nodeAddress,
        ipv6: placement.ipv6,
        reason: placement.reason,
        decided_at_ms: decidedAtMs,
      };
      await core.postMessage({
        type: 'POST',
        channel: NETWORK_CHANNEL.scheduling,
        content: { type: NETWORK_POST.allocation, content },
      });
    }, signal);

/** Publish what is decided, each kind with dates of its own. */
function createPublishers(core: CoreClient, { signal, log }: Pick<ControllerOptions, 'signal' | 'log'>) {
  const datingOf = (type: string) => new Dating(Date.now, () => readLatestMs(core, type, signal));
  const [allocations, lists] = [datingOf(NETWORK_POST.allocation), datingOf(NETWORK_POST.runners)];
  const runners = new RunnersPublisher({ core, dating: lists, signal, log });
  return {
    outbox: new Outbox({ publish: createPublisher(core, allocations), log }),
    runners,
    /** This scheduler speaks from now on. */
    takeOver(controller: Pick<Controller, 'onTurn'>) {
      for (const one of [allocations, lists, runners]) one.takeOver();
      controller.onTurn();
    },
    /** Another scheduler speaks from now on. */
    standDown(controller: Pick<Controller, 'onDeposed'>) {
      runners.standDown();
      controller.onDeposed();
    },
  };
}

/** How often the others are asked, and how often scores are read. */
const PEERS_PERIOD_MS = 1_000;
const SCORES_PERIOD_MS = 30_000;

function createController(config: SchedulerConfig, { runners, ...parts }: Parts): Controller {
  const { cpuOvercommit, trust, drain } = config;
  const drained = new Set(drain);
  const manages = (address: string) => trust !== 'listed' || parts.isListed(address);
  return new Controller({
    ...parts,
    cpuOvercommit,
    manages,
    trust,
    onNodes: (proved) => runners.offer(listRunners(proved)),
    rules: {
      graceMs: config.graceSeconds * 1000,
      scoreMin: config.scoreMinPercent / 100,
      privatePrefixes: !config.publicPrefixes,
      allowPrivate: config.allowPrivate,
    },
    isDrained: ({ address }) => drained.has(address),
    now: Date.now,
  });
}

interface Parts
  extends Pick<
    ControllerOptions,
    'health' | 'outbox' | 'isListed' | 'leads' | 'wrongSince' | 'signal' | 'log'
  > {
  readonly runners: RunnersPublisher;
}

interface HealthParts {
  readonly askers: Readonly<Record<'listed' | 'strangers', Asker>>;
  readonly isListed: (address: string) => boolean;
  readonly isAsked: (node: Node) => boolean;
  readonly onChange: (nodeId: string) => void;
  readonly signal: AbortSignal;
  readonly log: Host['log'];
}

const createAskers = ({ allowPrivate }: SchedulerConfig): HealthParts['askers'] => ({
  // The operator says where listed nodes are.
  listed: createAsker({ mayReach: createReach(true) }),
  strangers: createAsker({ mayReach: createReach(allowPrivate) }),
});

function createHealth({ allowPrivate }: SchedulerConfig, parts: HealthParts): Health {
  const { askers, isListed, signal } = parts;
  return new Health({
    ...parts,
    probe: (node, asksPrefix) => {
      const isTold = isListed(node.address);
      return probeNode(node, asksPrefix, {
        asker: isTold ? askers.listed : askers.strangers,
        signal,
        isTold,
      });
    },
    isListed: ({ address }) => isListed(address),
    asksPrefix: ({ ipv6Prefix, reason, address }) =>
      ipv6Prefix !== null &&
      reason === null &&
      refusePrefix(ipv6Prefix, isListed(address) || allowPrivate) === null,
    now: Date.now,
  });
}

interface LoopParts extends Pick<ControllerOptions, 'health' | 'signal' | 'log'> {
  readonly core: CoreClient;
  readonly controller: Controller;
  readonly leadership: Leadership;
  readonly listed: ReadonlySet<string>;
  readonly status: () => StatusInput;
}

/** Reads scores, and the nodes that they are of where the registry had no place for these before. */
function createScoresRound(
  config: SchedulerConfig,
  { core, controller, listed, signal, log }: LoopParts,
): { readonly watch: WatchOptions; readonly run: () => Promise<void> } {
  let sought: ReadonlySet<string> = new Set();
  const read = async () =>
    controller.setScores(await readScores(core, config.scoringPublishers, Date.now(), signal));
  const watch: WatchOptions = {
    ...{ core, listed, signal, log },
    nodes: () => controller.nodes,
    allowed: config.trust === 'listed' ? listed : undefined,
    isKept: (node) => controller.isKept(node),
    prepare: () =>
      read().catch((error: unknown) => log.debug({ err: error }, 'the scores could not be read')),
  };
  const run = async () => {
    await read();
    const missing = new Set(watch.allowed ? [] : controller.listMissing());
    // A node that took its announcement back is sought once.
    if ([...missing].some((nodeId) => !sought.has(nodeId))) await admitNodes(missing, watch, controller);
    sought = missing;
  };
  return { watch, run };
}

/** What the scheduler does again and again. Each ends with the signal. */
function startLoops(config: SchedulerConfig, parts: LoopParts): Promise<void>[] {
  const { core, controller, health, leadership, status, signal, log } = parts;
  const intervalMs = config.probeIntervalSeconds * 1000;
  const scores = createScoresRound(config, parts);
  return [
    watchNetwork(scores.watch, controller),
    runLoop({ name: 'probes', intervalMs, signal, log }, () => health.probeAll(controller.nodes)),
    runLoop({ name: 'peers', intervalMs: PEERS_PERIOD_MS, signal, log }, () => leadership.refresh()),
    runLoop({ name: 'scores', intervalMs: SCORES_PERIOD_MS, signal, log }, scores.run),
    runLoop({ name: 'checkpoint', intervalMs, signal, log }, async () => {
      try {
        await core.getInfo();
        controller.checkpoint();
      } catch (error) {
        controller.onDisconnect(error);
      }
      noteProblems(status());
    }),
  ];
}

/** Its HTTP door. The other schedulers, which ask once a second who leads, are not limited. */
function openDoor(config: SchedulerConfig, parts: Pick<RouteSource, 'snapshot' | 'status'>, log: Logger) {
  const limits = exemptHosts(rateLimitsOf(config), config.peers);
  return createApi({ ...parts, periodSeconds: config.probeIntervalSeconds }, limits, log);
}

/** The whole scheduler, built from the bottom up. Serves as soon as it listens; says 503 until the core node was read. */
export async function startScheduler(config: SchedulerConfig, host: Host): Promise<RunningService> {
  const { log } = host;
  await checkPort(config.host, config.port);
  const signer = createSigner(await loadOrCreateKeyFile(join(config.dataDir, 'key')));
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const { outbox, runners, takeOver, standDown } = createPublishers(core, { signal, log });
  const listed: ReadonlySet<string> = new Set(config.nodes);
  const isListed = (address: string) => listed.has(address);
  const askers = createAskers(config);
  const health = createHealth(config, {
    ...{ askers, isListed, signal, log },
    isAsked: (node) => controller.isAsked(node),
    onChange: (nodeId) => controller.onHealth(nodeId),
  });
  const leadership = new Leadership({
    address: signer.address,
    peerUrls: config.peers,
    takeoverMs: config.takeoverSeconds * 1000,
    canLead: () => controller.hasPlan && controller.coreFailure === null,
    onRole: (role) => (role === 'leader' ? takeOver : standDown)(controller),
    now: Date.now,
    signal,
    log,
  });
  const keep = (name: string) => openSince(join(config.dataDir, name), { now: Date.now, log });
  const [problems, wrongNodes] = [await keep('problems-since.json'), await keep('nodes-wrong-since.json')];
  const controller: Controller = createController(config, {
    ...{ health, outbox, runners, isListed, signal, log },
    wrongSince: wrongNodes.since,
    leads: () => leadership.leads,
  });

  const status = (): StatusInput => ({
    snapshot: controller.hasPlan ? controller.snapshot() : undefined,
    coreFailure: controller.coreFailure,
    isCutOff: controller.hasPlan && controller.isCutOff,
    scoresOutdatedMs: controller.scoresOutdatedMs,
    trouble: outbox.trouble,
    address: signer.address,
    standpoint: leadership.standpoint,
    peers: leadership.peers,
    since: problems.since,
  });
  const app = await openDoor(config, { snapshot: () => controller.snapshot(), status }, log);
  const url = await listen(app, config.host, config.port);
  log.info({ address: signer.address, core: config.coreUrl }, 'the scheduler signs with this address');
  const tasks = startLoops(config, { core, controller, health, leadership, listed, status, signal, log });
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      outbox[Symbol.dispose]();
      for (const asker of Object.values(askers)) asker.close();
      await Promise.all([app.close(), ...tasks]);
      await Promise.all([problems, wrongNodes].map((kept) => kept[Symbol.asyncDispose]()));
    },
  };
}
