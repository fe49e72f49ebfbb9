import { join } from 'node:path';
import { findFreePort, VERSION } from '@skerry/kit';
import { ONE_V8_THREAD } from '@skerry/kit/threads';
import type { DevnetChain } from './chain/chain.ts';
import { type DevnetPorts, PORTS, type PortName } from './ports.ts';

export type DaemonKind = 'core' | 'scheduler' | 'compute' | 'gateway' | 'monitor' | 'status' | 'credit';
/** `core-2` and so on: further core nodes, each with a database of its own. */
export type DaemonName = DaemonKind | `core-${number}`;
export type DevnetUrls = Readonly<Record<PortName, string>>;

/** Each before whatever needs it; those of one row start together. */
export const START_ORDER: readonly (readonly DaemonKind[])[] = [
  ['core'],
  ['scheduler', 'compute', 'gateway', 'credit'],
  ['monitor', 'status'],
];

/** The words of the command that runs a daemon, where they are not its name. */
export const COMMANDS: Partial<Readonly<Record<DaemonKind, readonly string[]>>> = {
  status: ['status', 'serve'],
};

/**
 * How much of Node's memory new objects may take, in MiB: what a start makes of them swells it to 16, and it stays so in a daemon
 * at rest. A core node under load needs some of it.
 */
const YOUNG_MIB: Partial<Readonly<Record<DaemonKind, number>>> = { core: 4 };
const YOUNG_MIB_OTHERS = 1;

export const nodeFlagsOf = (kind: DaemonKind) => [
  ONE_V8_THREAD,
  `--max-semi-space-size=${YOUNG_MIB[kind] ?? YOUNG_MIB_OTHERS}`,
];

export const CORES_MAX = 9;
/** Further core nodes listen so many ports apart, where the first one's port is given. */
const CORE_PORT_STEP = 100;

export const kindOf = (name: DaemonName): DaemonKind =>
  name.startsWith('core-') ? 'core' : (name as DaemonKind);

/** @param cores how many core nodes there are: the first one is in the order by itself */
export function startOrderOf(cores: number): readonly (readonly DaemonName[])[] {
  const more = Array.from({ length: cores - 1 }, (_, at) => `core-${at + 2}` as const);
  const [first, ...others] = START_ORDER;
  return more.length === 0 ? START_ORDER : [first!, more, ...others];
}

/** The ports of all core nodes: those that are not given are chosen before any starts, since each must know the others. */
export async function chooseCorePorts(first: number, cores: number): Promise<number[]> {
  if (cores === 1) return [first];
  const ports = first === 0 ? [await findFreePort()] : [first];
  while (ports.length < cores) {
    const port = first === 0 ? await findFreePort() : first + CORE_PORT_STEP * ports.length;
    if (!ports.includes(port)) ports.push(port);
  }
  return ports;
}

/** The doors of each daemon, in the order in which it names its urls when it is ready. */
export const DOORS: Readonly<Record<DaemonKind, readonly PortName[]>> = {
  core: ['core'],
  scheduler: ['scheduler'],
  compute: ['compute'],
  credit: ['credit'],
  gateway: ['gatewayHttp', 'gatewayHttps', 'gatewayApi'],
  monitor: [],
  status: ['status'],
};

export interface Plan {
  readonly dataDir: string;
  readonly ports: DevnetPorts;
  /** Of each core node. */
  readonly corePorts: readonly number[];
  /** The address of the scheduler's key, which the core node trusts. */
  readonly schedulerAddress: string;
  /** The address of the compute node's key, which the scheduler takes the word of. */
  readonly computeAddress: string;
  /** The address of the credit service's key, whose word on credit the core node takes. */
  readonly creditAddress: string;
  /** The same of the monitor. */
  readonly monitorAddress: string;
  /** How long the monitor's hour is; undefined for what its own setting says. */
  readonly hourSeconds: number | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly chain?: DevnetChain | undefined;
}

export const daemonDataDir = (dataDir: string, name: DaemonName) => join(dataDir, name);

export const daemonKeyFile = (dataDir: string, name: DaemonName) =>
  join(daemonDataDir(dataDir, name), name === 'compute' ? 'node.key' : 'key');

/** Where the monitor finds the autonomous systems of this machine's own addresses. */
export const systemsFile = (dataDir: string) => join(daemonDataDir(dataDir, 'monitor'), 'systems');
export const SYSTEMS = ['127.0.0.0/8', '::1/128', 'fc00::/7', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']
  .map((prefix) => `${prefix} 64512 This computer\n`)
  .join('');

type Settings = Readonly<Record<string, string>>;

/** What a person set wins over what a devnet would. */
const unlessSet = ({ environment }: Plan, settings: Settings) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, environment[name] || value]));

const joined = (...texts: (string | undefined)[]) => texts.filter(Boolean).join(',');

/** The first core node makes archives of messages; the others follow it. */
const anchorSettings = (name: DaemonName, { chain, environment }: Plan): Record<string, string> =>
  chain === undefined || environment.SKERRY_CORE_ANCHOR_FILE
    ? {}
    : { SKERRY_CORE_ANCHOR_FILE: name === 'core' ? chain.packingFile : chain.followingFile };

/**
 * Where daemons that others of the devnet speak to listen. Not "localhost", which they could not resolve on a machine
 * whose only other addresses are IPv6, such as an offline one with the interfaces of virtual machines.
 */
const LOOPBACK = '127.0.0.1';

/** On one's own machine nodes meet often, so that one sees them agree. */
const SYNC_INTERVAL_SECONDS = '5';

/** Where clients find the services beside a core node; those whose port the system chooses are not known before. */
const servicesOf = ({ gatewayApi, scheduler, credit, status }: DevnetPorts) =>
  Object.entries({ gateway: gatewayApi, scheduler, credit, status })
    .filter(([, port]) => port !== 0)
    .map(([service, port]) => `${service}=http://${LOOPBACK}:${port}`)
    .join(',');

/** Which of the core nodes this is, and where the others are. */
function peerSettings(name: DaemonName, { corePorts, environment }: Plan): Record<string, string> {
  if (corePorts.length === 1) return {};
  const own = name === 'core' ? 0 : Number(name.slice('core-'.length)) - 1;
  const peers = corePorts.filter((_, at) => at !== own).map((port) => `http://${LOOPBACK}:${port}`);
  return {
    SKERRY_CORE_PORT: String(corePorts[own]),
    SKERRY_CORE_PEERS: peers.join(','),
    SKERRY_CORE_SYNC_INTERVAL_SECONDS: environment.SKERRY_CORE_SYNC_INTERVAL_SECONDS || SYNC_INTERVAL_SECONDS,
  };
}

const SETTINGS_OF: Partial<
  Readonly<Record<DaemonKind, (plan: Plan, known: Partial<DevnetUrls>, name: DaemonName) => Settings>>
> = {
  core: (plan, _known, name) => ({
    ...peerSettings(name, plan),
    SKERRY_CORE_SCHEDULERS: plan.schedulerAddress,
    SKERRY_CORE_CREDIT_PUBLISHERS: plan.creditAddress,
    SKERRY_CORE_SCORING_PUBLISHERS: joined(
      plan.monitorAddress,
      plan.environment.SKERRY_CORE_SCORING_PUBLISHERS,
    ),
    ...anchorSettings(name, plan),
    ...unlessSet(plan, { SKERRY_CORE_SERVICES: servicesOf(plan.ports) }),
    // On one's own machine webhooks are, too.
    ...unlessSet(plan, {
      SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
      SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8,::1',
      SKERRY_CORE_ALLOW_PRIVATE: 'yes',
    }),
  }),
  scheduler: (plan) => ({
    // Its own node, so that the first machine waits for nobody's measurements.
    SKERRY_SCHEDULER_NODES: joined(plan.computeAddress, plan.environment.SKERRY_SCHEDULER_NODES),
    ...unlessSet(plan, { SKERRY_SCHEDULER_SCORING_PUBLISHERS: plan.monitorAddress }),
  }),
  gateway: (plan) => unlessSet(plan, { SKERRY_GATEWAY_ALLOW_PRIVATE: 'yes' }),
  monitor: (plan) => ({
    ...unlessSet(plan, {
      SKERRY_MONITOR_COMPUTE_FAMILY: 'any',
      SKERRY_MONITOR_ALLOW_PRIVATE: 'yes',
      SKERRY_MONITOR_ASN_FILE: systemsFile(plan.dataDir),
      SKERRY_MONITOR_RELEASES: `skerry-core@${VERSION},skerry-compute@${VERSION}`,
      SKERRY_MONITOR_SCORES_EVERY_HOURS: '1',
      SKERRY_MONITOR_TAGS: 'devnet',
    }),
    ...(plan.hourSeconds === undefined ? {} : { SKERRY_MONITOR_HOUR_SECONDS: String(plan.hourSeconds) }),
  }),
  status: (plan, { scheduler, gatewayApi }) =>
    unlessSet(plan, {
      SKERRY_STATUS_ALLOW_PRIVATE: 'yes',
      SKERRY_STATUS_SERVICES: joined(
        scheduler && `scheduler=${scheduler}/status`,
        gatewayApi && `gateway=${gatewayApi}/api/status`,
      ),
      SKERRY_STATUS_CHECK_INTERVAL_SECONDS: '10',
    }),
};

/** Every port that a daemon listens on, as its settings; after a first start, the ports it then had. */
function portSettings(name: DaemonKind, ports: DevnetPorts, urls: readonly string[] | undefined) {
  return DOORS[name].map((door, index) => {
    const served = urls?.[index];
    const port = ports[door] === 0 && served !== undefined ? new URL(served).port : String(ports[door]);
    return [PORTS[door].variable, port] as const;
  });
}

const INNER: ReadonlySet<DaemonKind> = new Set(['core', 'scheduler', 'compute', 'status', 'credit']);

/**
 * The settings that make a daemon part of this devnet.
 * @param known where those that started before serve
 * @param urls where this daemon served before, so that a restart comes back at the same place
 */
export function settingsOf(
  name: DaemonName,
  plan: Plan,
  known: Partial<DevnetUrls>,
  urls: readonly string[] | undefined,
): Record<string, string> {
  const kind = kindOf(name);
  const prefix = `SKERRY_${kind.toUpperCase()}`;
  const isCore = kind === 'core' || known.core === undefined;
  return {
    ...(INNER.has(kind) ? { [`${prefix}_HOST`]: plan.environment[`${prefix}_HOST`] || LOOPBACK } : {}),
    ...Object.fromEntries(portSettings(kind, plan.ports, urls)),
    [`${prefix}_DATA_DIR`]: daemonDataDir(plan.dataDir, name),
    ...(isCore ? {} : { [`${prefix}_CORE_URL`]: known.core! }),
    ...SETTINGS_OF[kind]?.(plan, known, name),
  };
}
