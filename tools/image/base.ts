import { execFileSync } from 'node:child_process';
import { computeConfig } from '@skerry/compute';
import { readConfig } from '@skerry/kit';
import { aptSources, findRecipe } from '../../services/compute/src/images/recipe.ts';
import { DEBIAN } from './layout.ts';

/** The image's lower layer: packages of Debian, unpacked and not installed. It has neither apt nor dpkg, and nothing to run them for. */

/** Where programs that look for known flaws find the packages of such an image: a control file for each. */
const STATUS = 'var/lib/dpkg/status.d';

const LIST_PACKAGES = `set -e
cd "$1"
mkdir -p ${STATUS}
for deb in var/cache/apt/archives/*.deb; do
  dpkg-deb --field "$deb" > "${STATUS}/$(dpkg-deb --field "$deb" Package)"
done`;

/**
 * Away with what mmdebstrap and apt needed, with what it took from this machine, and with programs that would become root. What is kept
 * of the documentation is each package's licence.
 */
const CLEAR = `set -e
cd "$1"
rm -rf etc/apt etc/dpkg etc/hostname etc/resolv.conf etc/fstab usr/lib/apt var/cache/* var/log/* var/lib/apt var/backups var/lib/dpkg/[!s]* var/lib/dpkg/status tmp/* run/*
for name in bash-completion bug info lintian locale man; do rm -rf usr/share/$name; done
find usr/share/doc -type f ! -name copyright -delete
find usr/share/doc -type d -empty -delete
find . -xdev -type f -perm /6000 -exec chmod ug-s {} +
for name in $(bin/busybox --list); do
  [ -e usr/bin/$name ] || [ -e usr/sbin/$name ] || ln -s busybox usr/bin/$name
done`;

/** Whatever mmdebstrap mounts is taken away by the kernel, also when this process is killed. */
const CONTAINED = ['--pdeathsig', 'KILL', 'unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--'];

/** Writes the layer. Needs root, for the owners of its files. The same packages give the same bytes. */
export function makeBase(to: string): void {
  if (process.geteuid?.() !== 0)
    throw new Error(
      "the image needs root, for the owners of Debian's files; make the other parts by their names",
    );
  const options = [
    ...['--mode=root', '--variant=extract', '--format=tar', `--include=${DEBIAN.packages.join(',')}`],
    ...[
      '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr',
      '--skip=output/dev',
      '--skip=cleanup',
      '--quiet',
    ],
    ...['--aptopt=APT::Install-Recommends "false"'],
    ...[`--extract-hook=${LIST_PACKAGES}`, `--extract-hook=${CLEAR}`],
  ];
  execFileSync('setpriv', [...CONTAINED, 'mmdebstrap', ...options, DEBIAN.suite, to, '-'], {
    input: aptSources(findRecipe('debian:12', readConfig(computeConfig, {}))),
    // A base of the same packages is the same layer in every release: whoever has it does not fetch it again.
    env: { ...process.env, SOURCE_DATE_EPOCH: '0' },
    // What it says counts only where it fails: the error quotes it.
    stdio: 'pipe',
  });
}

export interface UnpackedPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
}

/** Of control files, one after another. Pure. */
export const parseControls = (text: string): UnpackedPackage[] =>
  text
    .split(/^(?=Package: )/m)
    .filter((one) => one !== '')
    .map((one) => {
      const field = (name: string) => new RegExp(`^${name}: (.+)$`, 'm').exec(one)![1]!;
      return { name: field('Package'), version: field('Version'), architecture: field('Architecture') };
    });

/** The packages of a base, in the order of their names. */
export function listPackages(base: string): UnpackedPackage[] {
  const text = execFileSync(
    'tar',
    ['--extract', '--to-stdout', '--file', base, '--wildcards', `./${STATUS}/*`],
    {
      encoding: 'utf8',
      maxBuffer: 16 * 1024 ** 2,
    },
  );
  return parseControls(text);
}
