import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { CoreClient } from '@skerry/client';
import { type Host, type Logger, listen, type RunningService } from '@skerry/kit';
import type { Reason } from '@skerry/protocol';
import { nodeContentOf, obstacleReason } from './announce.ts';
import type { ComputeConfig } from './config.ts';
import { decideCapacity, readMachine } from './host/capacity.ts';
import { preflight } from './host/preflight.ts';
import { createComputeServer } from './http/routes.ts';
import { IMAGE_FILES } from './images/build.ts';
import { ImageStore } from './images/store.ts';
import { Keeper } from './instances/keeper.ts';
import { instanceDirectory, readRecords } from './instances/record.ts';
import { Slots } from './instances/slots.ts';
import { watchInstances } from './instances/watch.ts';
import { AddressBook } from './network/address-book.ts';
import { ipv4LinkOf } from './network/ipv4.ts';
import { networkNames } from './network/names.ts';
import { NodeNetwork } from './network/network.ts';
import { findHostIpv4, loadIpv4Pool } from './network/pool.ts';
import { loadIdentity } from './publish/identity.ts';
import { Publisher } from './publish/publisher.ts';
import { AcceleratorChoice } from './vm/accel.ts';
import { MACHINE_FILES } from './vm/machine.ts';

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
  const network = new NodeNetwork({ names, prefix: ipv6Prefix, ipv4Pool, isLanOpen: config.lanOpen });
  const ports = { first: config.hostPortFirst, last: config.hostPortLast };

  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const images = new ImageStore({ cacheDir: config.cacheDir, mirrors: config, log, signal });
  const publisher = new Publisher({
    core,
    log,
    signal,
    onAccepted: async (status) => keeper.find(status.instance_id)?.noteAccepted(status.observed_at_ms),
  });
  const keeper: Keeper = new Keeper({
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
      addresses: new AddressBook({ table: names.table, ports }),
      ipv4Pool,
      accelerator,
      starts: new Slots(availableParallelism()),
      log,
      signal,
      now: Date.now,
      onStatus: (id, status) => keeper.tell(id, status),
    },
  });

  const disks = (await readRecords(config.dataDir, log)).map(({ id }) =>
    join(instanceDirectory(config.dataDir, id), MACHINE_FILES.disk),
  );
  const capacity = decideCapacity(config, await readMachine(config.dataDir, disks));
  const hostIpv4 = reason === null ? await findHostIpv4() : undefined;
  const app = await createComputeServer({
    log,
    dataDir: config.dataDir,
    executions: () =>
      keeper.list().map(({ place, record }) => ({
        place,
        phase: record.status?.phase,
        times: record.phaseTimesMs,
        ipv4: record.ipv4 && { ...ipv4LinkOf(ipv4Pool, record.ipv4.link), ...record.ipv4 },
      })),
    hostIpv4: () => config.announceIpv4 ?? hostIpv4,
    facts: async () => ({
      announceUrl,
      nodeId,
      coreUrl: config.coreUrl,
      ipv6Prefix,
      isForwarding:
        (await readFile('/proc/sys/net/ipv6/conf/all/forwarding', 'utf8').catch(() => '')).trim() === '1',
      accelerator: accelerator.decided,
      reason,
    }),
  });
  const url = await listen(app, config.host, config.port);
  const announceUrl = config.announceUrl ?? url;
  const announce = () =>
    publisher.tellNode(
      nodeContentOf({
        url: announceUrl,
        ipv6Prefix,
        capacity,
        accelerator: accelerator.decided,
        reason,
        nowMs: Date.now(),
      }),
    );
  accelerator.onDecided = announce;

  await keeper.resume();
  announce();
  const jobs = [
    publisher.work(),
    watchInstances({ core, keeper, nodeId, log, signal }),
    prepareImages(reason === null ? config.prepareImages : [], images, accelerator, log, signal),
  ];
  log.info({ nodeId, address: signer.address, ipv6Prefix, capacity }, 'this compute node');
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      ending.abort();
      await app.close();
      const limit = AbortSignal.timeout(SETTLE_LIMIT_MS);
      const tooLong = new Promise<void>((resolve) =>
        limit.addEventListener('abort', () => resolve(), { once: true }),
      );
      await Promise.race([Promise.allSettled([...jobs, keeper.settled()]), tooLong]);
      // With instances, taps and rules stay as the machines do; without any, nothing of this node stays in the kernel.
      if (reason === null && keeper.list().length === 0) {
        await network
          .clear()
          .catch((error) => log.warn({ err: error }, 'the firewall table was left behind'));
      }
    },
  };
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
