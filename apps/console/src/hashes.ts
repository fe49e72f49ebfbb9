import { createHash } from 'node:crypto';
import { PAGE_FILE } from './files.ts';

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

/** The checksum of each file, by its path. */
type Sums = ReadonlyMap<string, string>;

const sumsOf = (files: ReadonlyMap<string, Uint8Array>): Sums =>
  new Map([...files].map(([path, bytes]) => [path, sha256(bytes)]));

const linesOf = (sums: Sums): string =>
  [...sums]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, sum]) => `${sum}  ${path}\n`)
    .join('');

/** A line for each file, in order of their paths, as sha256sum(1) writes them and takes them with `--check`. */
export const checksumsOf = (files: ReadonlyMap<string, Uint8Array>): string => linesOf(sumsOf(files));

/** The hash of a build: of the checksums of every file but the page, which names it. */
export const buildOfSums = (sums: Sums): string =>
  sha256(linesOf(new Map([...sums].filter(([path]) => path !== PAGE_FILE))));

/** The hash of the build that these files are. */
export const buildOf = (files: ReadonlyMap<string, Uint8Array>): string => buildOfSums(sumsOf(files));
