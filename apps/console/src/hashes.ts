import { createHash } from 'node:crypto';
import { PAGE_FILE } from './files.ts';

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

/** A line for each file, in order of their paths, as sha256sum(1) writes them and takes them with `--check`. */
export const checksumsOf = (files: ReadonlyMap<string, Uint8Array>): string =>
  [...files]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, bytes]) => `${sha256(bytes)}  ${path}\n`)
    .join('');

/** The hash of a build: of the checksums of every file but the page, which names it. */
export function buildOf(files: ReadonlyMap<string, Uint8Array>): string {
  return sha256(checksumsOf(new Map([...files].filter(([path]) => path !== PAGE_FILE))));
}
