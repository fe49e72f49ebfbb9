import { sha256Hex } from '@skerry/protocol';

/** The files of an image; one that boots by itself has the disk only. */
export const IMAGE_FILES = { disk: 'disk.qcow2', kernel: 'vmlinuz', initrd: 'initrd' } as const;

/** Beside them: what the image is. Written last. */
export const MANIFEST = 'manifest.json';
/** What the names of directories begin with that are no images: not yet, or not any more. */
const BUILD_PREFIX = '.build-';
/** Locks that builds share: each image has one of them, whatever images there are. */
const LOCKS = 64;

const lockNumberOf = (directoryName: string) =>
  Number.parseInt(sha256Hex(directoryName).slice(0, 8), 16) % LOCKS;

/** The file whose lock whoever builds an image holds, below the directory of images: one process builds it at a time. */
export const lockNameOf = (directoryName: string): string => `.lock-${lockNumberOf(directoryName)}`;

/** What the names of an image's builds begin with: whoever holds its lock may remove those that were cut off. */
export const buildPrefixOf = (directoryName: string): string =>
  `${BUILD_PREFIX}${lockNumberOf(directoryName)}-`;

/** The lock that the builder of a directory holds, by the directory's name, and what the names begin with that are its; undefined of others. */
export function lockOfBuild(name: string): { readonly lock: string; readonly prefix: string } | undefined {
  const [prefix, number] = /^\.build-([0-9]+)-/.exec(name) ?? [];
  return prefix === undefined ? undefined : { lock: `.lock-${number}`, prefix };
}

/** An image that is ready for use; it never changes. */
export interface Image {
  readonly name: string;
  /** Different for every build, also of the same recipe. */
  readonly buildId: string;
  readonly directory: string;
  /** Empty for an image that brings no kernel of the node's. */
  readonly kernelVersion: string;
  readonly diskMib: number;
  /**
   * `kernel`: a bare file system, booted with a kernel from outside. `firmware`: by its own boot sector. Absent in images
   * that older versions built, which are all of the first kind.
   */
  readonly boot?: 'firmware' | 'kernel' | undefined;
}

/** The names of the files that an image has. */
export function filesOf({ kernelVersion }: Pick<Image, 'kernelVersion'>): string[] {
  return kernelVersion === '' ? [IMAGE_FILES.disk] : Object.values(IMAGE_FILES);
}
