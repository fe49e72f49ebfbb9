import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { CoreClient } from '@skerry/client';
import {
  createReach,
  createStandings,
  type Host,
  type Logger,
  listen,
  type RunningService,
  runLoop,
} from '@skerry/kit';
import { normaliseAddress, OPERATION_WINDOW_MS, parseNodeUrl, type Reason } from '@skerry/protocol';
import { nodeContentOf, obstacleReason } from './announce.ts';
import type { ComputeConfig } from './config.ts';
import { DomainRegistry, type NamedInstance } from './domains/registry.ts';
import { decideCapacity, readMachine, withoutMemory } from './host/capacity.ts';
import { preflight } from './host/preflight.ts';
import { readLimits } from './http/limits.ts';
import { createComputeServer } from './http/routes.ts';
import { IMAGE_FILES } from './images/image.ts';
import { ImageStore } from './images/store.ts';
import { Backups } from './instances/backups.ts';
import { Keeper } from './instances/keeper.ts';
import { removeLeftovers } from './instances/leftovers.ts';
import { instanceDirectory, readRecords } from './instances/record.ts';
import { type GraceMs, sweepReleased } from './instances/released.ts';
import { Slots } from './instances/slots.ts';
import { watchInstances } from './instances/watch.ts';
import { AddressBook } from './network/address-book.ts';
import { type DiagnosticMachine, startDiagnosticMachine } from './network/diagnostic-machine.ts';
import { ipv4LinkOf } from './network/ipv4.ts';
import { networkNames } from './network/names.ts';
import { NodeNetwork } from './network/network.ts';
import { findHostIpv4, loadIpv4Pool } from './network/pool.ts';
import { ProofAddress } from './network/proof-address.ts';
import { OwnerAccess } from './owner/access.ts';
import { BackupLinks } from './owner/links.ts';
import { Replays } from './owner/replays.ts';
import { openPrograms } from './programs/open.ts';
import { loadIdentity } from './publish/identity.ts';
import { addProofRoute } from './publish/proof.ts';
import { Publisher } from './publish/publisher.ts';
import { AcceleratorChoice } from './vm/accel.ts';
import { MACHINE_FILES } from './vm/machine.ts';

const SWEEP_EVERY_MS = 10 * 60_000;
/** How often the address that proves the prefix is looked after. */
const PROOF_ADDRESS_EVERY_MS = 30_000;
const GIB = 1024 ** 3;
const HOUR_MS = 3_600_000;
/** Where nothing runs, nobody gets an address. */
const NO_POOL = '172.16.0.0/20';
/** After the signal to stop, what is in the middle of a step gets this long. All of it can be gone on with later. */
const SETTLE_LIMIT_MS = 5_000;

/** Builds the compute node from top to bottom and starts it. Virtual machines outlive it. */
export async function startCompute(config: ComputeConfig, host: Host): Promise<RunningService> {
  const { log } = host;
  const ending = new AbortController();
  const signal = AbortSignal.any([host.signal, ending.signal]);
  const identity = await loadIdentity(config.dataDir, config.ipv6Prefix);
  const { nodeId, ipv6Prefix, signer } = identity;
  const names = networkNames(nodeId);
  const accelerator = new AcceleratorChoice(config.accel, log);
  const reason = await findObstacle(config, accelerator, log, signal);
  const ipv4Pool = reason === null ? await loadIpv4Pool(config.dataDir, config.ipv4Pool) : NO_POOL;
  const network = new NodeNetwork({
    names,
    prefix: ipv6Prefix,
    ipv4Pool,
    isLanOpen: config.lanOpen,
    openNetworks: config.openNetworks,
    share: { connections: config.guestConnections, mbit: config.guestMbit },
  });
  const ports = { first: config.hostPortFirst, last: config.hostPortLast };

  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const programs = await openPrograms({ config, core, nodeId, log, signal });
  const images = new ImageStore({
    cacheDir: config.cacheDir,
    mirrors: config,
    log,
    signal,
    files: core,
    fileLimitBytes: config.imageLimitGib * GIB,
  });
  const publisher = new Publisher({
    core,
    log,
    signal,
    onAccepted: async (status) => keeper.find(status.instance_id)?.noteAccepted(status.observed_at_ms),
  });
  const disks = (await readRecords(config.dataDir, log)).map(({ id }) =>
    join(instanceDirectory(config.dataDir, id), MACHINE_FILES.disk),
  );
  const machine = await readMachine(config.dataDir, disks);
  const capacity = decideCapacity(config, withoutMemory(machine, programs.memoryMib));
  const addresses = new AddressBook({ table: names.table, ports });
  const keeper: Keeper = new Keeper({
    capacity,
    nodeId,
    ipv6Prefix,
    names,
    log,
    obstacle: reason,
    tell: (status) => publisher.tellStatus(status),
    shop: {
      dataDir: config.dataDir,
      nameServers: config.nameServers,
      images,
      network,
      addresses,
      ipv4Pool,
      accelerator,
      starts: new Slots(availableParallelism()),
      log,
      signal,
      now: Date.now,
      onStatus: (id, status) => keeper.tell(id, status),
    },
  });

  let diagnosticMachine: DiagnosticMachine = { ipv6: null, reason: 'the node is starting' };
  const hostIpv4 = reason === null ? await findHostIpv4() : undefined;
  const domains =
    config.domainZone === undefined
      ? undefined
      : new DomainRegistry({
          coreUrl: config.coreUrl,
          dataDir: config.dataDir,
          rules: {
            zone: config.domainZone,
            resolvers: config.domainResolvers,
            mayReach: createReach(config.allowPrivate),
          },
          instances: () => listNamed(keeper, ipv4Pool),
          log,
          signal,
        });
  await domains?.load();
  const links = await BackupLinks.load(config.dataDir);
  const backups = new Backups({ dataDir: config.dataDir, signal, now: Date.now });
  const limits = await readLimits(config);
  const clientOf = createStandings(limits);
  const replays = await Replays.load(
    { windowMs: OPERATION_WINDOW_MS, path: join(config.dataDir, 'operations.jsonl'), log },
    Date.now(),
  );
  const app = await createComputeServer({
    log,
    dataDir: config.dataDir,
    limits,
    clientOf,
    addRoutes: async (server) => {
      addProofRoute(server, { signer, nodeId, place: () => parseNodeUrl(announceUrl) });
      await programs.addRoutes(server, clientOf);
    },
    keeper,
    core,
    nodeId,
    signers: config.schedulers.map(normaliseAddress),
    images,
    backups,
    links,
    now: Date.now,
    access: new OwnerAccess({
      coreUrl: config.coreUrl,
      domain: () => new URL(announceUrl).hostname,
      nodeId,
      replays,
      now: Date.now,
    }),
    announceUrl: () => announceUrl,
    probes: { ipv4: config.probeIpv4, ipv6: config.probeIpv6, name: config.probeName },
    reachesInstance: () => reachesInstance(keeper, network),
    executions: () =>
      keeper.list().map(({ place, record }) => ({
        place,
        phase: record.status?.phase,
        times: record.phaseTimesMs,
        ipv4: record.ipv4 && { ...ipv4LinkOf(ipv4Pool, record.ipv4.link), ...record.ipv4 },
      })),
    hostIpv4: () => config.announceIpv4 ?? hostIpv4,
    domains,
    zone: config.domainZone,
    facts: async () => ({
      announceUrl,
      nodeId,
      coreUrl: config.coreUrl,
      ipv6Prefix,
      isForwarding:
        (await readFile('/proc/sys/net/ipv6/conf/all/forwarding', 'utf8').catch(() => '')).trim() === '1',
      isAnsweringNeighbours: network.isAnsweringNeighbours,
      accelerator: accelerator.decided,
      reason: reason ?? prefixTrouble,
      diagnosticMachine,
    }),
  });
  const url = await listen(app, config.host, config.port);
  const announceUrl = config.announceUrl ?? url;
  let prefixTrouble: Reason | null = null;
  const announce = () =>
    publisher.tellNode(
      nodeContentOf({
        url: announceUrl,
        ipv6Prefix,
        capacity,
        accelerator: accelerator.decided,
        reason: reason ?? prefixTrouble,
        programFeatures: programs.features,
        nowMs: Date.now(),
      }),
    );
  accelerator.onDecided = announce;

  const leftovers = await removeLeftovers(config.dataDir);
  if (leftovers.length > 0) log.info({ leftovers }, 'what the last process did not finish was removed');
  await keeper.resume();
  const proofAddress = new ProofAddress({
    prefix: ipv6Prefix,
    names,
    log,
    addRoutes: (server) => addProofRoute(server, { signer, nodeId, place: () => proofAddress.address }),
  });
  const keepProofAddress = async () => {
    if (reason !== null) return;
    const before = prefixTrouble;
    prefixTrouble = await proofAddress.keep();
    if (before?.message === prefixTrouble?.message) return;
    if (prefixTrouble) log.error({ reason: prefixTrouble }, 'this node takes no virtual machines');
    announce();
  };
  if (reason === null) prefixTrouble = await proofAddress.keep();
  diagnosticMachine = await startDiagnosticMachine({
    ...{ names, ipv6Prefix, ipv4Pool, network, addresses, log },
    obstacle: reason,
    runsPrograms: programs.programs !== undefined,
  });
  announce();
  await backups.sweep(true);
  const jobs = [
    publisher.work(),
    programs.work(),
    runLoop({ name: 'sweep', intervalMs: SWEEP_EVERY_MS, signal, log }, async () => {
      const records = keeper.list().map(({ record }) => record);
      await sweepReleased(config.dataDir, graceOf(config), records, Date.now(), log);
      await backups.sweep(false);
    }),
    watchInstances({ core, keeper, nodeId, log, signal, onAggregate: () => domains?.wake() }),
    runLoop({ name: 'proof address', intervalMs: PROOF_ADDRESS_EVERY_MS, signal, log }, keepProofAddress),
    domains?.work(),
    prepareImages(reason === null ? config.prepareImages : [], images, accelerator, log, signal),
  ];
  log.info({ nodeId, address: signer.address, ipv6Prefix, capacity }, 'this compute node');
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      ending.abort();
      await app.close();
      await proofAddress[Symbol.asyncDispose]();
      const limit = AbortSignal.timeout(SETTLE_LIMIT_MS);
      const tooLong = new Promise<void>((resolve) =>
        limit.addEventListener('abort', () => resolve(), { once: true }),
      );
      await Promise.race([Promise.allSettled([...jobs, keeper.settled()]), tooLong]);
      await programs[Symbol.asyncDispose]();
      // With instances, taps and rules stay as the machines do; without any, nothing of this node stays in the kernel.
      if (reason === null && keeper.list().length === 0) {
        await network
          .clear()
          .catch((error) => log.warn({ err: error }, 'the firewall table was left behind'));
      }
    },
  };
}

function listNamed(keeper: Keeper, ipv4Pool: string): NamedInstance[] {
  return keeper.list().flatMap(({ place, record: { wanted, ipv4 } }) =>
    wanted.owner === undefined
      ? []
      : [
          {
            id: place.id,
            owner: wanted.owner,
            ipv6: place.guest,
            ipv4: ipv4 ? ipv4LinkOf(ipv4Pool, ipv4.link).guest : null,
          },
        ],
  );
}

function graceOf({ releasedGraceHours, movedGraceHours }: ComputeConfig): GraceMs {
  const own = releasedGraceHours * HOUR_MS;
  return { forgotten: own, replaced: own, moved: movedGraceHours * HOUR_MS };
}

/** Whether some instance that runs answers at its IPv6; null where none runs. */
async function reachesInstance(keeper: Keeper, network: NodeNetwork): Promise<boolean | null> {
  const running = keeper.list().find(({ record }) => record.status?.phase === 'running');
  return running ? network.answers(running.place.tap, running.place.guest, running.place.mac) : null;
}

/** Why this machine cannot run virtual machines; said once, with all that is missing. */
async function findObstacle(
  config: ComputeConfig,
  accelerator: AcceleratorChoice,
  log: Logger,
  signal: AbortSignal,
): Promise<Reason | null> {
  const obstacles = await preflight(config.installPackages, log, signal);
  if (obstacles.length === 0)
    await accelerator.start().catch((error: Error) => obstacles.push(error.message));
  const reason = obstacleReason(obstacles);
  if (reason) log.warn({ obstacles }, `this node runs no virtual machines: ${reason.message}`);
  return reason;
}

/** Builds images ahead of their first use, and uses the first kernel to settle how guests run. */
async function prepareImages(
  names: readonly string[],
  images: ImageStore,
  accelerator: AcceleratorChoice,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (const name of names) {
    try {
      const image = await images.ensure(name, () => {});
      await accelerator.decide(
        join(image.directory, IMAGE_FILES.kernel),
        join(image.directory, IMAGE_FILES.initrd),
      );
    } catch (error) {
      if (!signal.aborted)
        log.error({ err: error, image: name }, 'an image could not be built ahead of its use');
    }
  }
}
