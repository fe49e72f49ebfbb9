import { cpus, loadavg, totalmem } from 'node:os';
import { VERSION } from '@skerry/kit';
import type { Phase, Reason } from '@skerry/protocol';
import type {
  CapabilityView,
  ExecutionView,
  NodeConfigView,
  RunningExecutionView,
  UsageView,
} from '@skerry/protocol/api/compute/node';
import { type DiskUsage, readAvailableMemory } from '../host/capacity.ts';
import type { GpuDevice, Processor } from '../host/processor.ts';
import type { Place } from '../instances/place.ts';
import type { PhaseTimes } from '../instances/record/record.ts';
import type { DiagnosticState } from '../network/diagnostic-machine.ts';
import { type HostPorts, type OpenPorts, protocolsOf } from '../network/host-ports.ts';
import type { Ipv4Link } from '../network/ipv4.ts';
import type { ProgramAbility } from '../programs/open.ts';
import type { AccelDecision } from '../vm/accel.ts';

/** The shapes that deployed tools read. Only what is known is filled in; nothing is made up. */

export interface Execution {
  readonly place: Place;
  readonly phase: Phase | undefined;
  readonly times: PhaseTimes;
  readonly open: OpenPorts;
  readonly ipv4: (Ipv4Link & { readonly hostPorts: HostPorts }) | undefined;
}

const iso = (timeMs: number | undefined) => (timeMs === undefined ? null : new Date(timeMs).toISOString());

/** `GET /v2/about/executions/list`: everything this node looks after, by instance id. */
export function executionsV2(
  executions: readonly Execution[],
  hostIpv4: string | undefined,
): Record<string, ExecutionView> {
  return Object.fromEntries(
    executions.map(({ place, phase, times, open, ipv4 }) => [
      place.id,
      {
        networking: {
          ipv4_network: ipv4?.network ?? null,
          host_ipv4: hostIpv4 ?? null,
          ipv6_network: place.network,
          ipv6_ip: place.guest,
          ipv4_ip: ipv4?.guest ?? null,
          mapped_ports: Object.fromEntries(
            Object.entries(ipv4?.hostPorts ?? {}).map(([port, host]) => [
              port,
              { host, ...protocolsOf(Number(port), open) },
            ]),
          ),
        },
        status: {
          defined_at: iso(times.scheduled),
          preparing_at: iso(times.preparing),
          prepared_at: iso(times.starting),
          starting_at: iso(times.starting),
          started_at: iso(times.running),
          stopping_at: iso(times.stopping),
          stopped_at: iso(times.stopped ?? times.failed),
        },
        running: phase === 'running',
        awaiting_confidential_init: false,
        vm_type: 'instance',
      },
    ]),
  );
}

/** `GET /about/executions/list`: what runs, by instance id. */
export function executionsV1(executions: readonly Execution[]): Record<string, RunningExecutionView> {
  const running = executions.filter(({ phase }) => phase === 'running');
  return Object.fromEntries(
    running.map(({ place, ipv4 }) => [
      place.id,
      {
        networking: { ipv4: ipv4?.network ?? null, ipv6: place.network },
        vm_type: 'instance',
        awaiting_confidential_init: false,
      },
    ]),
  );
}

const PERIOD_SECONDS = 60;
const KB = 1000;
const MIB = 1024 * 1024;

/** `GET /about/usage/system`. kB are thousands of bytes. */
export async function usageView(
  disk: DiskUsage,
  { vendor, features }: Processor,
  gpus: readonly GpuDevice[],
  nowMs: number,
): Promise<UsageView> {
  const cores = cpus();
  const speeds = cores.map((core) => core.speed).filter((speed) => speed > 0);
  const [load1 = 0, load5 = 0, load15 = 0] = loadavg();
  return {
    cpu: {
      count: cores.length,
      load_average: { load1, load5, load15 },
      core_frequencies: {
        min: speeds.length > 0 ? Math.min(...speeds) : null,
        max: speeds.length > 0 ? Math.max(...speeds) : null,
      },
    },
    mem: {
      total_kB: Math.floor(totalmem() / KB),
      available_kB: Math.floor((await readAvailableMemory()) / KB),
    },
    disk: { total_kB: Math.floor(disk.totalBytes / KB), available_kB: Math.floor(disk.availableBytes / KB) },
    period: {
      start_timestamp: new Date(nowMs - (nowMs % (PERIOD_SECONDS * 1000))).toISOString(),
      duration_seconds: PERIOD_SECONDS,
    },
    properties: {
      cpu: { architecture: architecture(), vendor, features },
    },
    // Guests are given none of them, so none is available.
    gpu: { devices: [...gpus], available_devices: [] },
    active: true,
  };
}

/** `GET /about/capability`. What the kernel does not say is null. */
export function capabilityView(processor: Processor): CapabilityView {
  return {
    cpu: {
      architecture: architecture(),
      vendor: processor.vendor,
      features: processor.features,
      model: processor.model,
      frequency: processor.frequencyMhz,
      count: cpus().length,
    },
    // Kind and clock stand in tables that only firmware tools read.
    memory: { size: Math.round(totalmem() / MIB), units: 'MiB', type: null, clock: null, clock_units: null },
  };
}

const architecture = () => (process.arch === 'x64' ? 'x86_64' : process.arch);

export interface NodeFacts {
  readonly announceUrl: string;
  readonly nodeId: string;
  readonly coreUrl: string;
  readonly ipv6Prefix: string;
  readonly isForwarding: boolean;
  readonly isAnsweringNeighbours: boolean;
  readonly accelerator: AccelDecision | undefined;
  readonly reason: Reason | null;
  /** What monitors ping. */
  readonly diagnosticMachine: DiagnosticState;
  readonly programs: ProgramAbility;
  /** Undefined where the node serves no custom domains. */
  readonly domainZone: string | undefined;
}

/** `GET /status/config`, with the accelerator and the reason for having no capacity beside what deployed nodes say. */
export function configView(facts: NodeFacts): NodeConfigView {
  const { announceUrl, nodeId, coreUrl, ipv6Prefix, isForwarding, accelerator, reason, diagnosticMachine } =
    facts;
  return {
    DOMAIN_NAME: new URL(announceUrl).hostname,
    node_hash: nodeId,
    version: VERSION,
    references: { API_SERVER: coreUrl },
    security: {
      USE_JAILER: false,
      PRINT_SYSTEM_LOGS: false,
      WATCH_FOR_UPDATES: true,
      ALLOW_VM_NETWORKING: true,
    },
    networking: {
      IPV6_ADDRESS_POOL: ipv6Prefix,
      IPV6_ALLOCATION_POLICY: 'static',
      IPV6_SUBNET_PREFIX: 124,
      IPV6_FORWARDING_ENABLED: isForwarding,
      USE_NDP_PROXY: facts.isAnsweringNeighbours,
    },
    diagnostic_machine: { ...diagnosticMachine },
    computing: {
      ENABLE_QEMU_SUPPORT: reason === null,
      INSTANCE_DEFAULT_HYPERVISOR: 'qemu',
      ENABLE_CONFIDENTIAL_COMPUTING: false,
      ENABLE_GPU_SUPPORT: false,
      ACCELERATOR: accelerator?.accelerator ?? null,
      ACCELERATOR_REASON: accelerator?.why ?? null,
    },
    reason,
    programs: { runtimes: [...facts.programs.runtimes], reason: facts.programs.reason },
    custom_domains: { zone: facts.domainZone ?? null },
  };
}
