import { join } from 'node:path';
import type { DevnetChain } from './chain.ts';
import { type DevnetPorts, PORTS, type PortName } from './ports.ts';

export type DaemonName = 'core' | 'scheduler' | 'compute' | 'gateway';
export type DevnetUrls = Readonly<Record<PortName, string>>;

/** Each before whatever needs it; those of one row start together. */
export const START_ORDER: readonly (readonly DaemonName[])[] = [
  ['core'],
  ['scheduler', 'compute', 'gateway'],
];

/** The doors of each daemon, in the order in which it names its urls when it is ready. */
export const DOORS: Readonly<Record<DaemonName, readonly PortName[]>> = {
  core: ['core'],
  scheduler: ['scheduler'],
  compute: ['compute'],
  gateway: ['gatewayHttp', 'gatewayHttps', 'gatewayApi'],
};

export interface Plan {
  readonly dataDir: string;
  readonly ports: DevnetPorts;
  /** The address of the scheduler's key, which the core node trusts. */
  readonly schedulerAddress: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly chain?: DevnetChain | undefined;
}

export const daemonDataDir = (dataDir: string, name: DaemonName) => join(dataDir, name);

export const schedulerKeyFile = (dataDir: string) => join(daemonDataDir(dataDir, 'scheduler'), 'key');

/** On one's own machine webhooks are, too. */
const webhookSettings = ({ environment }: Plan) => ({
  SKERRY_CORE_WEBHOOK_ALLOW_HTTP: environment.SKERRY_CORE_WEBHOOK_ALLOW_HTTP || 'yes',
  SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: environment.SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES || '127.0.0.0/8,::1',
});

/** The core node makes archives of messages; of several only the first one does. */
const anchorSettings = ({ chain, environment }: Plan): Record<string, string> =>
  chain === undefined || environment.SKERRY_CORE_ANCHOR_FILE
    ? {}
    : { SKERRY_CORE_ANCHOR_FILE: chain.packingFile };

/** Every port that a daemon listens on, as its settings; after a first start, the ports it then had. */
function portSettings(name: DaemonName, ports: DevnetPorts, urls: readonly string[] | undefined) {
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
const INNER: ReadonlySet<DaemonName> = new Set(['core', 'scheduler', 'compute']);

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
  const prefix = `SKERRY_${name.toUpperCase()}`;
  return {
    ...(INNER.has(name) ? { [`${prefix}_HOST`]: plan.environment[`${prefix}_HOST`] || LOOPBACK } : {}),
    ...Object.fromEntries(portSettings(name, plan.ports, urls)),
    [`${prefix}_DATA_DIR`]: daemonDataDir(plan.dataDir, name),
    ...(coreUrl === undefined ? {} : { [`${prefix}_CORE_URL`]: coreUrl }),
    ...(name === 'core'
      ? { SKERRY_CORE_SCHEDULERS: plan.schedulerAddress, ...webhookSettings(plan), ...anchorSettings(plan) }
      : {}),
  };
}
