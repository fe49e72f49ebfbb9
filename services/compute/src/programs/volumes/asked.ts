import { AppError, type NetworkVolume } from '@skerry/protocol';
import { PROGRAM_LIMITS } from '../limits.ts';

/** What a program finds mounted, beside what every program has. */
export type AskedVolume =
  /** A file of the network: its contents where it is squashfs, else the file itself. Read-only. */
  | { readonly kind: 'file'; readonly mount: string; readonly file: string }
  /** Empty at first. Without a name it lives as long as its sandbox; with one it is the program's on this node. */
  | { readonly kind: 'own'; readonly mount: string; readonly sizeMib: number; readonly name: string | null };

/** Paths that need no quoting anywhere, without `..`. */
const MOUNT = /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._-]+)+\/?$/;
/** What the sandbox itself consists of. */
const TAKEN = ['usr', 'lib', 'lib64', 'proc', 'dev', 'sys', 'tmp', 'skerry'];

/** Where a volume may be mounted, in words. */
const MOUNTABLE = `it takes an absolute path of letters, digits, ".", "_" and "-", at most ${PROGRAM_LIMITS.mountDepth - 1} directories deep, and not in ${TAKEN.map((name) => `/${name}`).join(', ')}`;

/** Where a volume is mounted; null where its message says nothing, or nothing that can be. Pure. */
function mountOf({ mount }: NetworkVolume): string | null {
  if (!mount) return null;
  const path = mount.replace(/\/$/, '');
  const isTaken = TAKEN.includes(path.split('/')[1] ?? '');
  if (!MOUNT.test(mount) || isTaken || path.split('/').length > PROGRAM_LIMITS.mountDepth)
    throw new AppError('PROGRAM_UNSUPPORTED', `a volume cannot be mounted at ${mount}: ${MOUNTABLE}`);
  return path;
}

/** Whether one path is the other, or lies below it. */
const overlap = (one: string, other: string) =>
  one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);

/** A volume of a message, with the file that it names where it names one; undefined where nothing is to be seen of it. */
function askedOf(volume: NetworkVolume, index: number, file: string): AskedVolume | undefined {
  const mount = mountOf(volume);
  if (mount === null) return undefined;
  if ('ref' in volume) return { kind: 'file', mount, file };
  if ('parent' in volume && volume.parent)
    throw new AppError(
      'PROGRAM_UNSUPPORTED',
      'volumes of programs that begin as a copy of a file are not supported',
    );
  const isEphemeral = 'ephemeral' in volume;
  return {
    kind: 'own',
    mount,
    sizeMib: volume.size_mib,
    name: isEphemeral ? null : volumeName(volume, index),
  };
}

/** A persistent volume is found again by its name, or by its place in the list. */
const volumeName = (volume: NetworkVolume, index: number): string =>
  ('name' in volume && volume.name) || `volume ${index}`;

/**
 * What is to be mounted. Pure but for `resolve`.
 *
 * @param resolve the file that a reference stands for
 * @throws AppError PROGRAM_UNSUPPORTED
 */
export async function readVolumes(
  volumes: readonly NetworkVolume[],
  resolve: (ref: { readonly ref: string; readonly useLatest: boolean }) => Promise<string>,
): Promise<AskedVolume[]> {
  if (volumes.length > PROGRAM_LIMITS.volumes)
    throw new AppError('PROGRAM_UNSUPPORTED', `a program has at most ${PROGRAM_LIMITS.volumes} volumes here`);
  const asked: AskedVolume[] = [];
  for (const [index, volume] of volumes.entries()) {
    const file =
      'ref' in volume && volume.mount
        ? await resolve({ ref: volume.ref, useLatest: volume.use_latest ?? true })
        : '';
    const one = askedOf(volume, index, file);
    if (!one) continue;
    if (asked.some(({ mount }) => overlap(mount, one.mount)))
      throw new AppError('PROGRAM_UNSUPPORTED', `two volumes are to be mounted at ${one.mount}`);
    asked.push(one);
  }
  return asked;
}
