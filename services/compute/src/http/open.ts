import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import { createClientOf, type HttpServer, type Logger, type RateLimitOptions } from '@skerry/kit';
import { OPERATION_WINDOW_MS, parseNodeUrl } from '@skerry/protocol';
import type { ComputeConfig } from '../config.ts';
import type { DomainRegistry } from '../domains/registry.ts';
import type { ImageStore } from '../images/store.ts';
import type { Backups } from '../instances/disks/backups.ts';
import type { Instances } from '../instances/instances.ts';
import type { DiagnosticMachine } from '../network/diagnostic-machine.ts';
import { ipv4LinkOf } from '../network/ipv4.ts';
import type { GuestNetwork } from '../network/open.ts';
import { OwnerAccess } from '../owner/access.ts';
import { BackupLinks } from '../owner/links.ts';
import { Replays } from '../owner/replays.ts';
import type { ProgramService } from '../programs/open.ts';
import type { Announcer } from '../publish/announcer.ts';
import type { Identity } from '../publish/identity.ts';
import { addProofRoute } from '../publish/proof.ts';
import type { AcceleratorChoice } from '../vm/accel.ts';
import { createComputeServer } from './routes.ts';
import type { Execution, NodeFacts } from './views.ts';

export interface ServerDeps {
  readonly identity: Identity;
  readonly core: CoreClient;
  readonly guests: GuestNetwork;
  readonly accelerator: AcceleratorChoice;
  readonly programs: ProgramService;
  readonly images: ImageStore;
  readonly instances: Instances;
  readonly backups: Backups;
  readonly domains: DomainRegistry | undefined;
  readonly announcer: Announcer;
  readonly diagnosticMachine: DiagnosticMachine;
  readonly limits: RateLimitOptions;
  readonly log: Logger;
}

/** The node's HTTP server, over everything that it answers for. It does not listen yet. */
export async function openServer(config: ComputeConfig, deps: ServerDeps): Promise<HttpServer> {
  const { identity, core, guests, programs, images, instances, backups, domains, announcer } = deps;
  const { limits, log } = deps;
  const { dataDir, coreUrl } = config;
  const { signer, nodeId } = identity;
  const clientOf = createClientOf(limits);
  const now = Date.now;
  const replays = await Replays.load(
    { windowMs: OPERATION_WINDOW_MS },
    join(dataDir, 'operations.jsonl'),
    log,
    now(),
  );
  const domain = () => new URL(announcer.url).hostname;
  return createComputeServer({
    ...{ log, dataDir, limits, clientOf, instances, core, nodeId, images, backups, domains, now },
    programs: programs.programs,
    addRoutes: async (server) => {
      addProofRoute(server, { signer, nodeId, place: () => parseNodeUrl(announcer.url), clientOf });
      await programs.addRoutes(server, clientOf);
    },
    readers: config,
    signers: config.schedulers,
    links: await BackupLinks.load(dataDir),
    access: new OwnerAccess({ coreUrl, domain, nodeId, replays, now }),
    announceUrl: () => announcer.url,
    probes: { ipv4: config.probeIpv4, ipv6: config.probeIpv6, name: config.probeName },
    reachesInstance: () => reachesInstance(deps),
    executions: () => listExecutions(deps),
    hostIpv4: () => guests.hostIpv4,
    zone: config.domainZone,
    facts: () => readFacts(config, deps),
  });
}

function listExecutions({ instances, guests }: ServerDeps): Execution[] {
  return instances.list().map(({ place, record }) => ({
    place,
    phase: record.status?.phase,
    times: record.phaseTimesMs,
    open: record.wanted,
    ipv4: record.ipv4 && { ...ipv4LinkOf(guests.ipv4Pool, record.ipv4.link), ...record.ipv4 },
  }));
}

/** Whether some instance that runs answers at its IPv6; null where none runs. */
async function reachesInstance({ instances, guests }: ServerDeps): Promise<boolean | null> {
  const running = instances.list().find(({ record }) => record.status?.phase === 'running');
  return running ? guests.network.answers(running.place.tap, running.place.guest, running.place.mac) : null;
}

async function readFacts(
  { coreUrl, domainZone }: Pick<ComputeConfig, 'coreUrl' | 'domainZone'>,
  { identity, guests, accelerator, announcer, diagnosticMachine, programs }: ServerDeps,
): Promise<NodeFacts> {
  const forwarding = await readFile('/proc/sys/net/ipv6/conf/all/forwarding', 'utf8').catch(() => '');
  return {
    announceUrl: announcer.url,
    nodeId: identity.nodeId,
    coreUrl,
    ipv6Prefix: identity.ipv6Prefix,
    isForwarding: forwarding.trim() === '1',
    isAnsweringNeighbours: guests.network.isAnsweringNeighbours,
    accelerator: accelerator.decided,
    reason: announcer.reason,
    diagnosticMachine: diagnosticMachine.state,
    programs: programs.ability,
    domainZone,
  };
}
