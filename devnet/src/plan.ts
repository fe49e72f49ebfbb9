import { join } from 'node:path';
import { VERSION } from '@skerry/kit';
import type { DevnetChain } from './chain.ts';
import { type DevnetPorts, PORTS, type PortName } from './ports.ts';

export type DaemonName = 'core' | 'scheduler' | 'compute' | 'gateway' | 'monitor' | 'status' | 'credit';
export type DevnetUrls = Readonly<Record<PortName, string>>;

/** Each before whatever needs it; those of one row start together. */
export const START_ORDER: readonly (readonly DaemonName[])[] = [
  ['core'],
  ['scheduler', 'compute', 'gateway', 'credit'],
  ['monitor', 'status'],
];

/** The words of the command that runs a daemon, where they are not its name. */
export const COMMANDS: Partial<Readonly<Record<DaemonName, readonly string[]>>> = {
  status: ['status', 'serve'],
};

/** The doors of each daemon, in the order in which it names its urls when it is ready. */
export const DOORS: Readonly<Record<DaemonName, readonly PortName[]>> = {
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
  /** The address of the scheduler's key, which the core node trusts. */
  readonly schedulerAddress: string;
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

export const daemonKeyFile = (dataDir: string, name: DaemonName) => join(daemonDataDir(dataDir, name), 'key');

/** Where the monitor finds the autonomous systems of this machine's own addresses. */
export const systemsFile = (dataDir: string) => join(daemonDataDir(dataDir, 'monitor'), 'systems');
export const SYSTEMS = ['127.0.0.0/8', '::1/128', 'fc00::/7', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']
  .map((prefix) => `${prefix} 64512 This machine\n`)
  .join('');

type Settings = Readonly<Record<string, string>>;

/** What a person set wins over what a devnet would. */
const unlessSet = ({ environment }: Plan, settings: Settings) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, environment[name] || value]));

const joined = (...texts: (string | undefined)[]) => texts.filter(Boolean).join(',');

/** The core node makes archives of messages; of several only the first one does. */
const anchorSettings = ({ chain, environment }: Plan): Record<string, string> =>
  chain === undefined || environment.SKERRY_CORE_ANCHOR_FILE
    ? {}
    : { SKERRY_CORE_ANCHOR_FILE: chain.packingFile };

const SETTINGS_OF: Partial<
  Readonly<Record<DaemonName, (plan: Plan, known: Partial<DevnetUrls>) => Settings>>
> = {
  core: (plan) => ({
    SKERRY_CORE_SCHEDULERS: plan.schedulerAddress,
    SKERRY_CORE_CREDIT_PUBLISHERS: plan.creditAddress,
    SKERRY_CORE_SCORING_PUBLISHERS: joined(
      plan.monitorAddress,
      plan.environment.SKERRY_CORE_SCORING_PUBLISHERS,
    ),
    ...anchorSettings(plan),
    // On one's own machine webhooks are, too.
    ...unlessSet(plan, {
      SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
      SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8,::1',
    }),
  }),
  scheduler: (plan) => unlessSet(plan, { SKERRY_SCHEDULER_SCORE_PUBLISHERS: plan.monitorAddress }),
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
      SKERRY_STATUS_PERIOD_SECONDS: '10',
    }),
};

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
const INNER: ReadonlySet<DaemonName> = new Set(['core', 'scheduler', 'compute', 'status', 'credit']);

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
  const prefix = `SKERRY_${name.toUpperCase()}`;
  const isCore = name === 'core' || known.core === undefined;
  return {
    ...(INNER.has(name) ? { [`${prefix}_HOST`]: plan.environment[`${prefix}_HOST`] || LOOPBACK } : {}),
    ...Object.fromEntries(portSettings(name, plan.ports, urls)),
    [`${prefix}_DATA_DIR`]: daemonDataDir(plan.dataDir, name),
    ...(isCore ? {} : { [`${prefix}_CORE_URL`]: known.core! }),
    ...SETTINGS_OF[name]?.(plan, known),
  };
}
