import { availableParallelism } from 'node:os';
import { CoreClient, findAnnouncement } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import {
  checkPort,
  createClientOf,
  exemptHosts,
  type Host,
  type Logger,
  listen,
  type RunningService,
  rateLimitsOf,
  runLoop,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { createSeldomCheck } from './caught-up.ts';
import type { ComputeConfig } from './config.ts';
import { openDomains } from './domains/open.ts';
import { findObstacle } from './host/obstacle.ts';
import { openServer } from './http/open.ts';
import { prepareImages } from './images/prepare.ts';
import { ImageStore } from './images/store.ts';
import { decideOffer, findSplit, readNodeMachine, readProgramsDisk } from './instances/capacity.ts';
import { Backups } from './instances/disks/backups.ts';
import { removeLeftovers } from './instances/disks/leftovers.ts';
import { keepRoom, sweepDisks } from './instances/disks/sweep.ts';
import { Instances } from './instances/instances.ts';
import { findLeftMachines } from './instances/left-machines.ts';
import { createStarts } from './instances/starts.ts';
import { watchInstances } from './instances/watch.ts';
import { DiagnosticMachine } from './network/diagnostic-machine.ts';
import { openNetwork } from './network/open.ts';
import { ProofAddress } from './network/proof-address.ts';
import { openPrograms } from './programs/open.ts';
import { findAnnouncedUrlFault } from './publish/announced-url.ts';
import { Announcer } from './publish/announcer.ts';
import { loadIdentity } from './publish/identity.ts';
import { addProofRoute } from './publish/proof.ts';
import { Publisher } from './publish/publisher.ts';
import { AcceleratorChoice } from './vm/accel.ts';
import { openBounds } from './vm/guest-bounds.ts';

/** How often it is looked whether something took away the address that proves the prefix, the firewall's rules, or answers to neighbours. */
const NETWORK_EVERY_MS = 30_000;
/** How often it is looked what copies leave of what the node offers: the network keeps each telling for good. */
const OFFER_EVERY_MS = 60_000;
const GIB = 1024 ** 3;
/** After the signal to stop, what is in the middle of a step gets this long. All of it can be gone on with later. */
const SETTLE_LIMIT_MS = 5_000;

/** Builds the compute node from top to bottom and starts it. Virtual machines outlive it. */
export async function startCompute(config: ComputeConfig, host: Host): Promise<RunningService> {
  const { log } = host;
  const fault = findAnnouncedUrlFault(config);
  if (fault !== undefined) throw new AppError('INVALID_CONFIG', fault);
  await checkPort(config.host, config.port);
  const ending = new AbortController();
  const signal = AbortSignal.any([host.signal, ending.signal]);
  const preparing = host.longStep?.('preparing this server');
  const node = await openNode(config, log, signal).finally(() => preparing?.[Symbol.dispose]());
  const { identity, obstacle, announcer } = node;
  // The core node that this one follows sends its callers' runs.
  const limits = exemptHosts(rateLimitsOf(config), [config.coreUrl]);
  const app = await openServer(config, { ...node, limits });
  const url = await listen(app, config.host, config.port);
  announcer.listensAt(url);
  const proofAddress = openProofAddress(node, createClientOf(limits));
  const keepProofAddress = async () => announcer.setPrefixObstacle(await proofAddress.keep());
  if (obstacle === null) await keepProofAddress();
  await node.diagnosticMachine.start();
  const offer = await node.instances.lookAtOffer();
  announcer.offer(offer);
  announcer.announce();

  const keepNetwork = async () => {
    await keepProofAddress();
    const { network } = node.guests;
    if (await network.keepRules())
      log.warn('something had removed the firewall rules of instances; they are in place again');
    if (await network.keepNeighbours())
      log.warn(
        'neighbours on the link had no answer for instances, as after it was down; they have one again',
      );
  };
  const jobs = startJobs(config, node, obstacle === null ? keepNetwork : undefined);
  const { nodeId, ipv6Prefix, signer } = identity;
  log.info({ nodeId, address: signer.address, ipv6Prefix, capacity: offer }, 'this compute node');
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      ending.abort();
      await app.close();
      await proofAddress[Symbol.asyncDispose]();
      await settle([...jobs, node.instances.settled()]);
      await node.programs[Symbol.asyncDispose]();
      if (obstacle === null) await clearNetwork(config.dataDir, node);
    },
  };
}

/** The node, with the machines that it had. Before that it answers nobody: it would say that it has none. */
async function openNode(config: ComputeConfig, log: Logger, signal: AbortSignal): Promise<Node> {
  // Before anything is written: a disk that is full may have room then.
  const { removed: leftovers, faults } = await removeLeftovers(config.dataDir);
  if (leftovers.length > 0) log.info({ leftovers }, 'removed unfinished files of the last process');
  if (Object.keys(faults).length > 0)
    log.error({ faults }, 'what the last process left unfinished could not be looked for everywhere');
  const split = await findSplit(config.dataDir);
  if (split.length > 0)
    log.error(
      { directories: split },
      'nothing can be moved to these from instances/, which is on another disk or in another mount: instances cannot be released, reinstalled or backed up until all are links into one mount, or none is',
    );
  const node = await createNode(config, log, signal);
  await node.instances.resume();
  return node;
}

/** Everything that the node consists of; nothing of it works yet. */
async function createNode(config: ComputeConfig, log: Logger, signal: AbortSignal) {
  const { dataDir } = config;
  const identity = await loadIdentity(dataDir, config.ipv6Prefix);
  const { nodeId, ipv6Prefix, signer } = identity;
  const accelerator = new AcceleratorChoice(config.accel, log);
  const obstacle = await findObstacle(config.installPackages, accelerator, log, signal);
  const guests = await openNetwork(config, identity, obstacle);
  const { names, ipv4Pool, network, addresses } = guests;
  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const sync = new CoreSync(config.coreUrl, { signal });
  const machine = await readNodeMachine(dataDir, log);
  const { freeGib, isShared } = await readProgramsDisk(dataDir, machine);
  const programs = await openPrograms({ config, core, sync, nodeId, freeGib, log, signal });
  const fileLimitBytes = config.imageLimitGib * GIB;
  const images = new ImageStore({
    ...{ cacheDir: config.cacheDir, mirrors: config, table: config.images, log, signal },
    files: { source: core, limitBytes: fileLimitBytes },
  });
  const publisher = new Publisher({
    ...{ core, log, signal, now: Date.now },
    lastAnnouncedMs: async () => (await findAnnouncement(core, signer.address, { signal }))?.atMs ?? 0,
  });
  const { capacity, besideBytes } = decideOffer(
    config,
    machine,
    isShared ? programs : { ...programs, diskGib: 0 },
  );
  const now = Date.now;
  const starts = createStarts(availableParallelism());
  const instances = new Instances({
    ...{ capacity, besideBytes, nodeId, ipv6Prefix, names, obstacle },
    tell: (status) => publisher.tellStatus(status),
    deps: {
      ...{ dataDir, nameServers: config.nameServers, images, network, addresses, ipv4Pool, accelerator },
      bounds: openBounds(config, nodeId, obstacle === null ? log : undefined),
      ...{ core, checkLag: createSeldomCheck(sync), fileLimitBytes, starts, log, signal, now },
    },
  });
  const announcer = new Announcer({
    ...{ publisher, ipv6Prefix, capacity, accelerator, obstacle, log },
    programFeatures: programs.features,
    announceUrl: config.announceUrl,
    isDraining: config.drain,
  });
  const diagnosticMachine = new DiagnosticMachine({
    ...{ names, ipv6Prefix, ipv4Pool, network, addresses, obstacle, log },
    runsPrograms: programs.programs !== undefined,
  });
  const domains = await openDomains(config, { instances, ipv4Pool, log, signal });
  const backups = await Backups.open({ dataDir, signal, now, log });
  return {
    ...{ identity, obstacle, accelerator, guests, core, sync, programs, images, publisher },
    ...{ instances, announcer, diagnosticMachine, domains, backups, log, signal },
  };
}

type Node = Awaited<ReturnType<typeof createNode>>;

/** Each ends with the signal. @param keepNetwork undefined where the node takes no virtual machines */
function startJobs(
  config: ComputeConfig,
  {
    identity,
    accelerator,
    core,
    sync,
    programs,
    images,
    publisher,
    instances,
    announcer,
    domains,
    backups,
    log,
    signal,
  }: Node,
  keepNetwork: (() => Promise<void>) | undefined,
): (Promise<void> | undefined)[] {
  return [
    publisher.work(async (status) => instances.find(status.instance_id)?.noteAccepted(status.observed_at_ms)),
    programs.work(),
    sweepDisks(config, { backups, log, signal }),
    keepRoom(config.dataDir, { images, log, signal }),
    watchInstances({
      ...{ core, sync, instances, nodeId: identity.nodeId, log, signal },
      onAggregate: (sender) => domains?.wake(sender),
    }),
    keepNetwork &&
      runLoop({ name: 'offer', intervalMs: OFFER_EVERY_MS, signal, log }, async () =>
        announcer.offer(await instances.lookAtOffer()),
      ),
    keepNetwork && runLoop({ name: 'network', intervalMs: NETWORK_EVERY_MS, signal, log }, keepNetwork),
    // Where no instance was resumed, none is known: what was proven of them stays for when they are.
    keepNetwork && domains?.work(),
    prepareImages(keepNetwork ? config.prepareImages : [], images, accelerator, log, signal),
  ];
}

function openProofAddress(
  { identity: { signer, nodeId, ipv6Prefix }, guests: { names }, log }: Node,
  clientOf: ReturnType<typeof createClientOf>,
): ProofAddress {
  return new ProofAddress({
    ...{ prefix: ipv6Prefix, names, log },
    addRoutes: (server, address) => addProofRoute(server, { signer, nodeId, place: () => address, clientOf }),
  });
}

async function settle(jobs: readonly (Promise<void> | undefined)[]): Promise<void> {
  const limit = AbortSignal.timeout(SETTLE_LIMIT_MS);
  const tooLong = new Promise<void>((resolve) =>
    limit.addEventListener('abort', () => resolve(), { once: true }),
  );
  await Promise.race([Promise.allSettled(jobs), tooLong]);
}

/** With instances, taps and rules stay as the machines do; without any, nothing of this node stays in the kernel. */
async function clearNetwork(
  dataDir: string,
  { instances, guests: { network }, log }: Pick<Node, 'instances' | 'guests' | 'log'>,
): Promise<void> {
  if (instances.list().length > 0 || (await findLeftMachines(dataDir)).length > 0) return;
  await network.clear().catch((error) => log.warn({ err: error }, 'the firewall table was not removed'));
}
