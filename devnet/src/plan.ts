import { join } from 'node:path';
import { type DevnetPorts, findFreePort, PORTS, type PortName } from './ports.ts';

export type DaemonKind = 'core' | 'scheduler' | 'compute' | 'gateway';
/** `core-2` and so on: further core nodes, each with a database of its own. */
export type DaemonName = DaemonKind | `core-${number}`;
export type DevnetUrls = Readonly<Record<PortName, string>>;

/** Each before whatever needs it; those of one row start together. */
export const START_ORDER: readonly (readonly DaemonKind[])[] = [
  ['core'],
  ['scheduler', 'compute', 'gateway'],
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
  while (ports.length < cores)
    ports.push(first === 0 ? await findFreePort() : first + CORE_PORT_STEP * ports.length);
  return ports;
}

/** The doors of each daemon, in the order in which it names its urls when it is ready. */
export const DOORS: Readonly<Record<DaemonKind, readonly PortName[]>> = {
  core: ['core'],
  scheduler: ['scheduler'],
  compute: ['compute'],
  gateway: ['gatewayHttp', 'gatewayHttps', 'gatewayApi'],
};

export interface Plan {
  readonly dataDir: string;
  readonly ports: DevnetPorts;
  /** Of each core node. */
  readonly corePorts: readonly number[];
  /** The address of the scheduler's key, which the core node trusts. */
  readonly schedulerAddress: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export const daemonDataDir = (dataDir: string, name: DaemonName) => join(dataDir, name);

export const schedulerKeyFile = (dataDir: string) => join(daemonDataDir(dataDir, 'scheduler'), 'key');

/** On one's own machine webhooks are, too. */
const webhookSettings = ({ environment }: Plan) => ({
  SKERRY_CORE_WEBHOOK_ALLOW_HTTP: environment.SKERRY_CORE_WEBHOOK_ALLOW_HTTP || 'yes',
  SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: environment.SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES || '127.0.0.0/8,::1',
});

/** On one's own machine nodes meet often, so that one sees them agree. */
const SYNC_INTERVAL_SECONDS = '5';

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

/** Every port that a daemon listens on, as its settings; after a first start, the ports it then had. */
function portSettings(name: DaemonKind, ports: DevnetPorts, urls: readonly string[] | undefined) {
  return DOORS[name].map((door, index) => {
    const served = urls?.[index];
    const port = ports[door] === 0 && served !== undefined ? new URL(served).port : String(ports[door]);
    return [PORTS[door].variable, port] as const;
  });
}

/**
 * Where daemons that others of the devnet speak to listen. Not "localhost", which they could not resolve on a machine
 * whose only other addresses are IPv6, such as an offline one with the interfaces of virtual machines.
 */
const LOOPBACK = '127.0.0.1';
const INNER: ReadonlySet<DaemonKind> = new Set(['core', 'scheduler', 'compute']);

/**
 * The settings that make a daemon part of this devnet.
 * @param coreUrl where the core node serves; undefined for the core node itself
 * @param urls where this daemon served before, so that a restart comes back at the same place
 */
export function settingsOf(
  name: DaemonName,
  plan: Plan,
  coreUrl: string | undefined,
  urls: readonly string[] | undefined,
): Record<string, string> {
  const kind = kindOf(name);
  const prefix = `SKERRY_${kind.toUpperCase()}`;
  return {
    ...(INNER.has(kind) ? { [`${prefix}_HOST`]: plan.environment[`${prefix}_HOST`] || LOOPBACK } : {}),
    ...Object.fromEntries(portSettings(kind, plan.ports, urls)),
    [`${prefix}_DATA_DIR`]: daemonDataDir(plan.dataDir, name),
    ...(coreUrl === undefined ? {} : { [`${prefix}_CORE_URL`]: coreUrl }),
    ...(kind === 'core'
      ? {
          SKERRY_CORE_SCHEDULERS: plan.schedulerAddress,
          ...webhookSettings(plan),
          ...peerSettings(name, plan),
        }
      : {}),
  };
}
