import { GUESTS_UNIT } from '../../services/compute/src/vm/guest-scope.ts';
import type { Daemon } from '../daemons.ts';
import { cacheOf, homesOf, NATIVE_PLANE, START, settingsOf, userOf } from './layout.ts';

type Section = readonly (readonly [key: string, value: string])[];

/** What only some of the daemons need. */
interface Needs {
  readonly capabilities?: readonly string[];
  readonly files?: number;
  readonly environment?: Readonly<Record<string, string>>;
  readonly more?: Section;
}

const WATCHDOG_SECONDS = 120;
const OPEN_FILES = 65_536;
/** Two for each connection, two pipes for its bytes, and twice that while an upgrade lets old connections end. */
const GATEWAY_FILES = 524_288;

const NEEDS: Readonly<Record<string, Needs>> = {
  gateway: {
    // Ports 80 and 443.
    capabilities: ['CAP_NET_BIND_SERVICE'],
    files: GATEWAY_FILES,
    environment: { SKERRY_GATEWAY_CACHE_DIR: NATIVE_PLANE },
    more: [
      // The successor takes the listening sockets while this process serves, and then says that it is the main process. The reload
      // ends when it has said so; where it fails, this one goes on. systemd does not tell it of the watchdog, which it answers from then.
      ['NotifyAccess', 'all'],
      ['ExecReload', `/usr/bin/env WATCHDOG_USEC=${WATCHDOG_SECONDS * 1_000_000} ${START} gateway replace`],
    ],
  },
  // To ping the diagnostic machine of each node.
  monitor: { capabilities: ['CAP_NET_RAW'] },
};

/** Where one of its processes runs out of memory, the kernel ends that one, and the service goes on. */
const OOM: Section = [['OOMPolicy', 'continue']];

/** Of the compute node: what it needs beside it. */
const BESIDE: Readonly<Record<string, Section>> = { compute: [['Wants', GUESTS_UNIT]] };

const unitSection = ({ name, summary }: Daemon): Section => [
  ['Description', `Skerry: ${summary}`],
  ['Documentation', 'file:///usr/share/doc/skerry/packages.md'],
  ['Wants', 'network-online.target'],
  // Not after the core node: the others serve what they know, and wait for it themselves.
  ['After', 'network-online.target'],
  ...(BESIDE[name] ?? []),
  // It is tried again for as long as it takes: disks are emptied, and databases come back.
  ['StartLimitIntervalSec', '0'],
];

/** What holds for every daemon: how it is started, watched, stopped and started again. */
function serviceSection(role: string, { files = OPEN_FILES, environment = {}, more = [] }: Needs): Section {
  const variables = { ...homesOf(role), ...environment };
  return [
    ['Type', 'notify'],
    ['ExecStart', `${START} ${role}`],
    ...Object.entries(variables).map(([name, value]) => ['Environment', `${name}=${value}`] as const),
    ['EnvironmentFile', `-${settingsOf(role)}`],
    ...more,
    ['StateDirectory', `skerry/${role}`],
    ['StateDirectoryMode', '0700'],
    ['CacheDirectory', cacheOf(role).replace('/var/cache/', '')],
    // A long step of a start, such as a migration, asks for more.
    ['TimeoutStartSec', '300'],
    ['TimeoutStopSec', '45'],
    ['WatchdogSec', String(WATCHDOG_SECONDS)],
    // The daemon ends what it started; what is left then is killed.
    ['KillMode', 'mixed'],
    ['Restart', 'always'],
    ['RestartSec', '5'],
    // Longer and longer, where systemd knows it (254).
    ['RestartSteps', '6'],
    ['RestartMaxDelaySec', '60'],
    // What only the operator can mend: a wrong setting, a database of another release.
    ['RestartPreventExitStatus', '2'],
    ['LimitNOFILE', String(files)],
    ['SyslogIdentifier', `skerry-${role}`],
  ];
}

/** Daemons that need nothing of the machine but network and a directory. */
function confinement(role: string, capabilities: readonly string[]): Section {
  return [
    ['User', userOf(role)],
    ['UMask', '0077'],
    ['NoNewPrivileges', 'yes'],
    ['CapabilityBoundingSet', capabilities.join(' ')],
    ['AmbientCapabilities', capabilities.join(' ')],
    // A user namespace takes away what the capability is for.
    ...(capabilities.length === 0 ? ([['PrivateUsers', 'yes']] as const) : []),
    ['PrivateTmp', 'yes'],
    ['PrivateDevices', 'yes'],
    ['DevicePolicy', 'closed'],
    ['ProtectSystem', 'strict'],
    ['ProtectHome', 'yes'],
    ['ProtectProc', 'invisible'],
    ['ProcSubset', 'pid'],
    ['ProtectClock', 'yes'],
    ['ProtectHostname', 'yes'],
    ['ProtectKernelLogs', 'yes'],
    ['ProtectKernelModules', 'yes'],
    ['ProtectKernelTunables', 'yes'],
    ['ProtectControlGroups', 'yes'],
    // Netlink is how a process learns the machine's addresses.
    ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6 AF_NETLINK'],
    ['RestrictNamespaces', 'yes'],
    ['RestrictRealtime', 'yes'],
    ['RestrictSUIDSGID', 'yes'],
    ['LockPersonality', 'yes'],
    ['RemoveIPC', 'yes'],
    // Not MemoryDenyWriteExecute: V8 compiles JavaScript into memory that it then runs.
    ['SystemCallArchitectures', 'native'],
    ['SystemCallFilter', '@system-service'],
    // A refused call is an error that the program can answer, and not its end.
    ['SystemCallErrorNumber', 'EPERM'],
  ];
}

/** docs/packages.md says what each is for. */
const COMPUTE_CAPABILITIES = [
  ...['CAP_NET_ADMIN', 'CAP_NET_RAW'],
  ...['CAP_SYS_ADMIN', 'CAP_SYS_CHROOT', 'CAP_MKNOD', 'CAP_SETFCAP', 'CAP_FSETID'],
  ...['CAP_CHOWN', 'CAP_FOWNER', 'CAP_DAC_OVERRIDE'],
  ...['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'],
  ...['CAP_KILL', 'CAP_SYS_PTRACE', 'CAP_SYS_RESOURCE'],
];

/**
 * The compute node is root: it makes devices, networks and file systems. Settings that would give it mounts of its own are left
 * out: what it mounts for the machine, such as the namespaces of addresses, has to be there for the next process too.
 */
const computeConfinement = (): Section => [
  ['NoNewPrivileges', 'yes'],
  ['CapabilityBoundingSet', COMPUTE_CAPABILITIES.join(' ')],
  // Sandboxes of programs have groups of their own below the unit's. Guests have scopes.
  ['Delegate', 'cpu io memory pids'],
  ...OOM,
  ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET'],
  ['RestrictRealtime', 'yes'],
  ['LockPersonality', 'yes'],
  ['SystemCallArchitectures', 'native'],
  // seccomp: QEMU confines itself, and does not start where it cannot.
  ['SystemCallFilter', '@system-service @mount sethostname setdomainname seccomp'],
  ['SystemCallErrorNumber', 'EPERM'],
];

const render = (sections: Readonly<Record<string, Section>>) =>
  Object.entries(sections)
    .map(([name, lines]) => `[${name}]\n${lines.map(([key, value]) => `${key}=${value}\n`).join('')}`)
    .join('\n');

/** The unit of a daemon. */
export function renderUnit(daemon: Daemon): string {
  const { name } = daemon;
  const needs = NEEDS[name] ?? {};
  const isCompute = name === 'compute';
  const environment = isCompute ? { SKERRY_COMPUTE_INSTALL_PACKAGES: 'no' } : needs.environment;
  return render({
    Unit: unitSection(daemon),
    Service: [
      ...serviceSection(name, { ...needs, ...(environment && { environment }) }),
      ...(isCompute ? computeConfinement() : [...OOM, ...confinement(name, needs.capabilities ?? [])]),
    ],
    Install: [['WantedBy', 'multi-user.target']],
  });
}

/** Longer than a guest gets (shut-down.ts), and what the command itself takes. */
const POWER_OFF_SECONDS = 150;

/**
 * Does nothing until the computer goes down, or the package is removed: then the compute node's process has ended, whose place at the
 * guests' QEMU is free, and their scopes have not.
 */
export const renderGuestsUnit = (): string =>
  render({
    Unit: [
      ['Description', 'Skerry: shuts virtual machines down before the computer'],
      ['Documentation', 'file:///usr/share/doc/skerry/packages.md'],
      ['Before', 'skerry-compute.service'],
    ],
    Service: [
      ['Type', 'oneshot'],
      ['RemainAfterExit', 'yes'],
      ['ExecStop', `${START} compute power-off`],
      ...Object.entries(homesOf('compute')).map(
        ([name, value]) => ['Environment', `${name}=${value}`] as const,
      ),
      ['EnvironmentFile', `-${settingsOf('compute')}`],
      ['TimeoutStopSec', String(POWER_OFF_SECONDS)],
      ['SyslogIdentifier', 'skerry-guests'],
      ...computeConfinement(),
    ],
  });
