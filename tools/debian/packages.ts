import {
  PROGRAMS,
  PYTHON_LIBRARIES,
  packagesFor,
  SANDBOX_PROGRAMS,
} from '../../services/compute/src/host/requirements.ts';
import { GUESTS_SLICE, GUESTS_UNIT } from '../../services/compute/src/vm/guest-scope.ts';
import { DAEMONS } from '../daemons.ts';
import { dataOf, LAUNCHER, UNITS, unitOf, userOf } from './layout.ts';
import { renderScripts, type Scripts } from './scripts.ts';
import { settingsFileOf } from './settings-file.ts';
import { renderGuestsUnit, renderUnit } from './units.ts';

export interface PackagedFile {
  readonly path: string;
  readonly text: string;
  readonly mode?: number;
}

export interface DebianPackage {
  readonly name: string;
  readonly summary: string;
  /** Paragraphs. */
  readonly description: readonly string[];
  readonly depends: readonly string[];
  readonly recommends: readonly string[];
  readonly suggests: readonly string[];
  readonly files: readonly PackagedFile[];
  /** What an operator may change and an upgrade keeps. */
  readonly conffiles: readonly string[];
  readonly scripts: Scripts;
  /** It holds Node, the command and every daemon. */
  readonly hasTree: boolean;
}

/** Every Debian has them, and nothing depends on them without a version (Debian policy, 3.5). */
const ESSENTIAL: ReadonlySet<string> = new Set(['coreutils', 'dpkg', 'util-linux']);

const daemonsOf = (isWanted: (role: string) => boolean) => DAEMONS.filter(({ name }) => isWanted(name));
const isCompute = (role: string) => role === 'compute';
const OTHERS = daemonsOf((role) => !isCompute(role));

const SYSUSERS = 'skerry.conf';

const userLines = OTHERS.map(({ name }) => `u ${userOf(name)} - "Skerry ${name}" ${dataOf(name)}\n`).join('');

/** What needrestart would do to a unit whose old process still serves somebody: nothing. */
const needrestart = (roles: readonly string[]): PackagedFile => ({
  path: `/etc/needrestart/conf.d/skerry-${roles.join('-')}.conf`,
  text: roles.map((role) => `$nrconf{override_rc}{qr(^${userOf(role)}\\.service$)} = 0;\n`).join(''),
});

function filesOf(daemons: typeof DAEMONS): { files: PackagedFile[]; settings: PackagedFile[] } {
  return {
    files: daemons.map((daemon) => ({ path: `${UNITS}/${unitOf(daemon.name)}`, text: renderUnit(daemon) })),
    settings: daemons.map(settingsFileOf),
  };
}

/** @param libc the version that the native data plane was compiled with */
function mainPackage(libc: string): DebianPackage {
  const { files, settings } = filesOf(OTHERS);
  const own = needrestart(['gateway']);
  return {
    name: 'skerry',
    summary: 'decentralised cloud that people run themselves',
    description: [
      'The command skerry and every daemon of a network, each as a systemd unit with a settings file in /etc/skerry: core node, scheduler, gateway, monitor, credit service, status service and IPFS peer.',
      'Nothing starts by itself. To run a core node: systemctl enable --now skerry-core',
    ],
    depends: [
      `libc6 (>= ${libc})`,
      // Node and its modules are linked with them.
      'libatomic1',
      'libgcc-s1',
      'libstdc++6',
      'ca-certificates',
      'systemd | systemd-standalone-sysusers',
    ],
    // The monitor's; and a library that checks a signature in less time than the one inside, under the names of several releases.
    recommends: ['iputils-ping', [1, 2, 5, 6].map((version) => `libsecp256k1-${version}`).join(' | ')],
    // A data plane that the gateway's operator may choose.
    suggests: ['haproxy'],
    files: [
      ...files,
      ...settings,
      own,
      { path: '/usr/bin/skerry', text: LAUNCHER, mode: 0o755 },
      { path: `/usr/lib/sysusers.d/${SYSUSERS}`, text: userLines },
    ],
    conffiles: [...settings, own].map(({ path }) => path),
    scripts: renderScripts({ roles: OTHERS.map(({ name }) => name), users: SYSUSERS }),
    hasTree: true,
  };
}

function computePackage(version: string): DebianPackage {
  const { files, settings } = filesOf(daemonsOf(isCompute));
  const own = needrestart(['compute']);
  const slice = `[Unit]\nDescription=Virtual machines of the Skerry compute node\n`;
  return {
    name: 'skerry-compute',
    summary: 'compute node of a Skerry network',
    description: [
      'What a compute node needs to run virtual machines and programs: its systemd unit, its settings file, QEMU, nftables, bubblewrap and the rest.',
      'Nothing starts by itself. To run it: systemctl enable --now skerry-compute',
    ],
    depends: [
      `skerry (= ${version})`,
      'systemd',
      ...packagesFor([...Object.keys(PROGRAMS), ...Object.keys(SANDBOX_PROGRAMS)]).filter(
        (name) => !ESSENTIAL.has(name),
      ),
    ],
    recommends: packagesFor(Object.keys(PYTHON_LIBRARIES)),
    suggests: [],
    files: [
      ...files,
      ...settings,
      own,
      { path: `${UNITS}/${GUESTS_SLICE}`, text: slice },
      { path: `${UNITS}/${GUESTS_UNIT}`, text: renderGuestsUnit() },
    ],
    conffiles: [...settings, own].map(({ path }) => path),
    scripts: renderScripts({ roles: ['compute'], guests: [GUESTS_UNIT, GUESTS_SLICE] }),
    hasTree: false,
  };
}

export const describePackages = (version: string, libc: string): readonly DebianPackage[] => [
  mainPackage(libc),
  computePackage(version),
];

const LINE_CHARS = 78;

/** deb-control(5): every line begins with a space, and an empty one is a dot. */
function layOutDescription(paragraphs: readonly string[]): string {
  const wrap = (paragraph: string) =>
    paragraph.replace(new RegExp(`(.{1,${LINE_CHARS}})(?: +|$)`, 'g'), ' $1\n');
  return paragraphs.map(wrap).join(' .\n');
}

const listIn = (field: string, names: readonly string[]) =>
  names.length === 0 ? '' : `${field}: ${names.join(', ')}\n`;

export function renderControl(
  { name, summary, description, depends, recommends, suggests }: DebianPackage,
  { version, architecture, sizeKib }: { version: string; architecture: string; sizeKib: number },
): string {
  return `Package: ${name}
Version: ${version}
Architecture: ${architecture}
Maintainer: Skerry <skerry@localhost>
Section: net
Priority: optional
Installed-Size: ${sizeKib}
Depends: ${depends.join(', ')}
${listIn('Recommends', recommends)}${listIn('Suggests', suggests)}Description: ${summary}
${layOutDescription(description)}`;
}
