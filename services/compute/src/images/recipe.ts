import { createHash } from 'node:crypto';
import { AppError, IMAGE_ALIASES, IMAGE_NAMES, type IMAGES } from '@skerry/protocol';
import { type CloudInitKind, guestFiles } from './guest-files.ts';
import { guestLinks } from './guest-links.ts';
import { encodeInitrd, INITRD_MODULES } from './initrd.ts';
import { UBUNTU_ARCHIVE_KEY } from './ubuntu-key.ts';

/** How an image is made; everything that changes the result is in here, so that its hash can name the result. */
export interface Recipe {
  /** `debian:12` */
  readonly name: string;
  readonly suite: string;
  readonly packages: readonly string[];
  /** A package that depends on the newest kernel for virtual machines. */
  readonly kernelPackage: string;
  readonly diskMib: number;
  /** How this suite's cloud-init starts: as four units by default, since 24.3 as one process of its own. */
  readonly cloudInit?: CloudInitKind;
  /** Debian by default. */
  readonly distro?: 'ubuntu';
  readonly mirror: string;
  readonly securityMirror: string;
}

export interface Mirrors {
  readonly debianMirror: string;
  readonly debianSecurityMirror: string;
  readonly ubuntuMirror: string;
  readonly ubuntuSecurityMirror: string;
}

/** Raised when the way of building changes in a manner that the recipe's own text does not show. */
const BUILDER_VERSION = 1;
const KEY_DIGITS = 12;
/** The smallest disk an instance may ask for is 1 GiB: an image must fit into it. */
const IMAGE_DISK_MIB = 1024;

const DEBIAN_PACKAGES: readonly string[] = [
  'systemd-sysv',
  'udev',
  'kmod',
  'dbus',
  'libpam-systemd',
  'openssh-server',
  'iproute2',
  'iputils-ping',
  'netbase',
  'cloud-init',
  'python3',
  'openssl',
  'ca-certificates',
  'curl',
];

/** What each of the network's images is made of. A disk goes on with what it was made of. */
const RECIPES: readonly (Omit<Recipe, 'mirror' | 'securityMirror'> & {
  readonly name: (typeof IMAGES)[number];
})[] = [
  {
    name: 'debian:12',
    suite: 'bookworm',
    packages: DEBIAN_PACKAGES,
    kernelPackage: 'linux-image-cloud-amd64',
    diskMib: IMAGE_DISK_MIB,
  },
  {
    name: 'debian:13',
    suite: 'trixie',
    // Since Debian 13 it is not among the packages that every system has, and cloud-init grows the file system with it.
    packages: [...DEBIAN_PACKAGES, 'e2fsprogs'],
    kernelPackage: 'linux-image-cloud-amd64',
    diskMib: IMAGE_DISK_MIB,
    cloudInit: 'one-process',
  },
  {
    name: 'ubuntu:24.04',
    suite: 'noble',
    packages: DEBIAN_PACKAGES,
    kernelPackage: 'linux-image-virtual',
    diskMib: IMAGE_DISK_MIB,
    cloudInit: 'one-process',
    distro: 'ubuntu',
  },
];

/** Throws UNKNOWN_IMAGE, naming those there are. */
export function findRecipe(name: string, mirrors: Mirrors): Recipe {
  const recipe = RECIPES.find((one) => one.name === (IMAGE_ALIASES[name] ?? name));
  if (!recipe) {
    throw new AppError(
      'UNKNOWN_IMAGE',
      `there is no image ${JSON.stringify(name)}; available: ${IMAGE_NAMES.join(', ')}`,
    );
  }
  return recipe.distro === 'ubuntu'
    ? { ...recipe, mirror: mirrors.ubuntuMirror, securityMirror: mirrors.ubuntuSecurityMirror }
    : { ...recipe, mirror: mirrors.debianMirror, securityMirror: mirrors.debianSecurityMirror };
}

/** Names a recipe's result: the same recipe gives the same key, any change another one. */
export function recipeKey(recipe: Recipe): string {
  const initrd = encodeInitrd(new Uint8Array(), []).toString('base64');
  const { cloudInit, distro } = recipe;
  const guest = [guestFiles(cloudInit, distro), guestLinks(distro)];
  const parts = [BUILDER_VERSION, recipe, ...guest, INITRD_MODULES, initrd];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, KEY_DIGITS);
}

/** The directory, below the cache, that holds a recipe's result. */
export function imageDirectoryName(recipe: Recipe): string {
  return `${recipe.name.replaceAll(':', '-')}-${recipeKey(recipe)}`;
}

/** apt's sources for a recipe, as sources.list(5) has them. A guest keeps them, and whose signature they need. */
export function aptSources(recipe: Recipe): string {
  const { suite, mirror, securityMirror } = recipe;
  if (recipe.distro !== 'ubuntu') {
    return [
      `deb ${mirror} ${suite} main`,
      `deb ${mirror} ${suite}-updates main`,
      `deb ${securityMirror} ${suite}-security main`,
      '',
    ].join('\n');
  }
  const stanza = (uri: string, suites: string) =>
    [
      'Types: deb',
      `URIs: ${uri}`,
      `Suites: ${suites}`,
      'Components: main universe',
      // A machine with Debian does not know this key.
      `Signed-By:\n${UBUNTU_ARCHIVE_KEY.replaceAll(/^$/gm, '.').replaceAll(/^/gm, ' ')}`,
      '',
    ].join('\n');
  return [stanza(mirror, `${suite} ${suite}-updates`), stanza(securityMirror, `${suite}-security`)].join(
    '\n',
  );
}
