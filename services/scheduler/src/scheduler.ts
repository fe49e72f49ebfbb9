import { join } from 'node:path';
import { CoreClient, createSigner } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
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
import { CoreStep } from './core-step.ts';
import { Dating, readLatestMs } from './dating.ts';
import { Health, type NetworkChange } from './health.ts';
import { DEPARTURES, type HeldBack, NETWORK_CHANGES, openHeldBack } from './held-back.ts';
import { createApi } from './http/api.ts';
import type { RouteSource } from './http/routes.ts';
import { noteProblems, type StatusInput } from './http/status.ts';
import { Leadership } from './leadership.ts';
import { Outbox } from './outbox.ts';
import { learnDepartures } from './past/learn.ts';
import { Departures, type DeparturesOptions } from './planning/departures.ts';
import { refusePrefix } from './planning/prefix.ts';
import { probeNode } from './probe.ts';
import { ProblemLog } from './problem-log.ts';
import { listRunners, RunnersPublisher } from './runners.ts';
import { readScores } from './scores.ts';
import type { Node, Placement } from './view.ts';
import { admitNodes, type WatchOptions, watchNetwork } from './watch.ts';

/** Publishes decisions. @param confirm is waited for before each: it may end its signal */
const createPublisher =
  (core: CoreClient, dating: Dating, confirm: () => Promise<void>) =>
  async (instanceId: string, placement: Placement, signal: AbortSignal): Promise<void> => {
    await confirm();
    await dating.date(async (decidedAtMs) => {
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
  };

/** Publish what is decided, each kind with dates of its own. */
function createPublishers(
  core: CoreClient,
  { signal, log, confirm }: Pick<ControllerOptions, 'signal' | 'log'> & { confirm: () => Promise<void> },
) {
  const datingOf = (type: string) => new Dating(Date.now, () => readLatestMs(core, type, signal));
  const [allocations, lists] = [datingOf(NETWORK_POST.allocation), datingOf(NETWORK_POST.runners)];
  const runners = new RunnersPublisher({ core, dating: lists, signal, log });
  return {
    outbox: new Outbox({ publish: createPublisher(core, allocations, confirm), log }),
    runners,
    /** This scheduler speaks from now on. */
    takeOver(controller: Pick<Controller, 'onTurn'>) {
      for (const one of [allocations, lists, runners]) one.takeOver();
      controller.onTurn();
    },
    /** This scheduler speaks no more. */
    standDown(controller: Pick<Controller, 'onDeposed'>) {
      runners.standDown();
      controller.onDeposed();
    },
  };
}

interface VoiceParts
  extends Pick<ReturnType<typeof createPublishers>, 'takeOver' | 'standDown'>,
    Pick<ControllerOptions, 'signal' | 'log'> {
  readonly core: CoreClient;
  readonly address: string;
  readonly controller: () => Controller;
}

/** Whether this scheduler speaks: where it leads, and has read a core node that has what its peers have. */
function createVoice(config: SchedulerConfig, parts: VoiceParts) {
  const { core, address, controller, takeOver, standDown, signal, log } = parts;
  const sync = new CoreSync(core.url, { signal });
  let speaks = false;
  const turn = () => {
    const may = leadership.leads && step.lag === null;
    if (may === speaks) return;
    speaks = may;
    (may ? takeOver : standDown)(controller());
  };
  const onChange = () => {
    turn();
    controller().planSoon();
  };
  const step = new CoreStep({ check: () => sync.check(), onChange, log });
  const leadership: Leadership = new Leadership({
    address,
    peerUrls: config.peers,
    takeoverMs: config.takeoverSeconds * 1000,
    canLead: () => controller().hasPlan && controller().coreFailure === null && step.lag === null,
    onRole: turn,
    now: Date.now,
    signal,
    log,
  });
  let quietRounds = 0;
  /** Seldom while all is as it should be: the core node may count what it is asked. Whoever reads it says what fails. */
  const look = async () => {
    const isQuiet = step.lag === null && !step.isLost && sync.isInStep;
    quietRounds = isQuiet ? quietRounds + 1 : 0;
    if (quietRounds % QUIET_ROUNDS === 0) await step.look().catch(() => {});
  };
  /** While the node is cut off, each decision may be of an instance that comes from peers that it meets again, with its placement behind it. */
  const confirm = async () => {
    if (!sync.isInStep) await step.look();
  };
  return { step, look, confirm, leadership, speaks: () => speaks && !step.isLost };
}

/** How often the others are asked, how often the core node whether it has what its peers have, and how often scores are read. */
const PEERS_PERIOD_MS = 1_000;
const STEP_PERIOD_MS = 2_000;
const QUIET_ROUNDS = 5;
const SCORES_PERIOD_MS = 30_000;

const graceMsOf = ({ graceSeconds }: SchedulerConfig) => graceSeconds * 1000;

function createController(config: SchedulerConfig, { runners, ...parts }: Parts): Controller {
  const { cpuOvercommit, trust, drain } = config;
  const drained = new Set(drain);
  const manages = (address: string) => trust !== 'listed' || parts.isListed(address);
  return new Controller({
    ...parts,
    cpuOvercommit,
    manages,
    trust,
    onNodes: (proved) => runners.offer(listRunners(proved, parts.isListed)),
    rules: {
      graceMs: graceMsOf(config),
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
    'health' | 'outbox' | 'departures' | 'isListed' | 'leads' | 'wrongSince' | 'signal' | 'log'
  > {
  readonly runners: RunnersPublisher;
}

interface HealthParts {
  readonly askers: Readonly<Record<'listed' | 'strangers', Asker>>;
  readonly isListed: (address: string) => boolean;
  readonly isAsked: (node: Node) => boolean;
  readonly onChange: (nodeId: string) => void;
  readonly networks: HeldBack<NetworkChange>;
  readonly signal: AbortSignal;
  readonly log: Host['log'];
}

const createAskers = ({ allowPrivate }: SchedulerConfig): HealthParts['askers'] => ({
  // The operator says where listed nodes are.
  listed: createAsker({ mayReach: createReach(true) }),
  strangers: createAsker({ mayReach: createReach(allowPrivate) }),
});

function createHealth({ allowPrivate }: SchedulerConfig, parts: HealthParts): Health {
  const { askers, isListed, networks, signal } = parts;
  const health = new Health({
    ...parts,
    networksBefore: networks.before,
    onNetworkChange: networks.changed,
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
  networks.follow(() => health.listNetworkChanges());
  return health;
}

/** What is known of nodes for longer than this process lives. */
async function openMemory(config: SchedulerConfig, log: Logger) {
  const pathOf = (name: string) => join(config.dataDir, name);
  const keepSince = (name: string) => openSince(pathOf(name), { now: Date.now, log });
  const clocks = { now: Date.now, uptime: () => performance.now(), log };
  const departed = await openHeldBack(pathOf('nodes-left.json'), DEPARTURES, clocks);
  const networks = await openHeldBack(pathOf('networks-changed.json'), NETWORK_CHANGES, clocks);
  const [problems, wrongNodes] = [
    await keepSince('problems-since.json'),
    await keepSince('nodes-wrong-since.json'),
  ];
  return {
    ...{ networks, problems, wrongNodes },
    createDepartures(isListed: DeparturesOptions['isListed']): Departures {
      const { before, changed: onChange } = departed;
      const departures = new Departures({ isListed, graceMs: graceMsOf(config), before, onChange, log });
      departed.follow(() => departures.list());
      return departures;
    },
    async [Symbol.asyncDispose]() {
      const all = [departed, networks, problems, wrongNodes];
      await Promise.all(all.map((kept) => kept[Symbol.asyncDispose]()));
    },
  };
}

interface LoopParts extends Pick<ControllerOptions, 'health' | 'departures' | 'signal' | 'log'> {
  readonly core: CoreClient;
  readonly controller: Controller;
  readonly leadership: Leadership;
  readonly step: CoreStep;
  /** Asks the core node whether it has what its peers have, where that is due. */
  readonly look: () => Promise<void>;
  readonly listed: ReadonlySet<string>;
  readonly status: () => StatusInput;
}

/**
 * What other schedulers knew of nodes that left often. With each full read, since a core node that was behind tells it only once it has caught
 * up, and before anything is decided.
 */
async function learnPast(config: SchedulerConfig, parts: LoopParts): Promise<void> {
  const { core, controller, departures, listed, signal } = parts;
  const isListed = (address: string) => listed.has(address);
  const [graceMs, now, uptime] = [graceMsOf(config), Date.now, () => performance.now()];
  const learned = await learnDepartures({ core, departures, isListed, graceMs, now, uptime, signal });
  for (const nodeId of learned) controller.onHealth(nodeId);
}

/** Reads scores, and the nodes that they are of where the registry had no place for these before. */
function createScoresRound(
  config: SchedulerConfig,
  parts: LoopParts,
): { readonly watch: WatchOptions; readonly run: () => Promise<void> } {
  const { core, step, controller, listed, signal, log } = parts;
  let sought: ReadonlySet<string> = new Set();
  const read = async () =>
    controller.setScores(await readScores(core, config.scoringPublishers, Date.now(), signal));
  const missed = (msg: string) => (error: unknown) => log.debug({ err: error }, msg);
  const watch: WatchOptions = {
    ...{ core, step, listed, signal, log },
    nodes: () => controller.nodes,
    allowed: config.trust === 'listed' ? listed : undefined,
    isKept: (node) => controller.isKept(node),
    prepare: async () => {
      await read().catch(missed('the scores could not be read'));
      await learnPast(config, parts).catch(missed('what nodes did of late could not be read'));
    },
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
  const { core, controller, health, leadership, look, listed, status, signal, log } = parts;
  const intervalMs = config.probeIntervalSeconds * 1000;
  const scores = createScoresRound(config, parts);
  const problems = new ProblemLog(log);
  const probe = (name: string, isListed: boolean) =>
    runLoop({ name, intervalMs, signal, log }, () =>
      health.probeAll([...controller.nodes].filter(({ address }) => listed.has(address) === isListed)),
    );
  return [
    watchNetwork(scores.watch, controller),
    // Each in rounds of its own: strangers that answer slowly have no listed node asked more seldom.
    probe('probes', true),
    probe('probes of strangers', false),
    runLoop({ name: 'step', intervalMs: STEP_PERIOD_MS, signal, log }, look),
    runLoop({ name: 'peers', intervalMs: PEERS_PERIOD_MS, signal, log }, () => leadership.refresh()),
    runLoop({ name: 'scores', intervalMs: SCORES_PERIOD_MS, signal, log }, scores.run),
    runLoop({ name: 'checkpoint', intervalMs, signal, log }, async () => {
      try {
        await core.getInfo();
        controller.checkpoint();
      } catch (error) {
        controller.onDisconnect(error);
      }
      problems.tell(noteProblems(status()), Date.now());
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
  const confirm = (): Promise<void> => voice.confirm();
  const { outbox, runners, ...turns } = createPublishers(core, { signal, log, confirm });
  const listed: ReadonlySet<string> = new Set(config.nodes);
  const isListed = (address: string) => listed.has(address);
  const askers = createAskers(config);
  const memory = await openMemory(config, log);
  const departures = memory.createDepartures(isListed);
  const health = createHealth(config, {
    ...{ askers, isListed, networks: memory.networks, signal, log },
    isAsked: (node) => controller.isAsked(node),
    onChange: (nodeId) => controller.onHealth(nodeId),
  });
  const voice = createVoice(config, {
    ...{ core, address: signer.address, controller: () => controller, ...turns, signal, log },
  });
  const controller: Controller = createController(config, {
    ...{ health, outbox, departures, runners, isListed, signal, log },
    wrongSince: memory.wrongNodes.since,
    leads: voice.speaks,
  });

  const status = (): StatusInput => ({
    snapshot: controller.hasPlan ? controller.snapshot() : undefined,
    coreFailure: controller.coreFailure,
    lag: voice.step.lag,
    isCutOff: controller.hasPlan && controller.isCutOff,
    scoresOutdatedMs: controller.scoresOutdatedMs,
    trouble: outbox.trouble,
    address: signer.address,
    standpoint: voice.leadership.standpoint,
    peers: voice.leadership.peers,
    since: memory.problems.since,
  });
  const app = await openDoor(config, { snapshot: () => controller.snapshot(), status }, log);
  const url = await listen(app, config.host, config.port);
  log.info({ address: signer.address, core: config.coreUrl }, 'the scheduler signs with this address');
  const loops = { core, controller, health, departures, ...voice, listed, status, signal, log };
  const tasks = startLoops(config, loops);
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      outbox[Symbol.dispose]();
      for (const asker of Object.values(askers)) asker.close();
      await Promise.all([app.close(), ...tasks]);
      await memory[Symbol.asyncDispose]();
    },
  };
}
