import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { computeConfig } from '@skerry/compute';
import { readConfig } from '@skerry/kit';
import { buildImage } from '../../../services/compute/src/images/build.ts';
import type { Image } from '../../../services/compute/src/images/image.ts';
import { findRecipe, imageDirectoryName } from '../../../services/compute/src/images/recipe.ts';
import { findCacheDir } from '../../../services/compute/src/testing/play.ts';

/** Podman as Debian has it, rootless, with what it only recommends. */
const PODMAN: readonly string[] = [
  ...['podman', 'podman-compose', 'netavark', 'aardvark-dns', 'nftables'],
  ...['dbus-user-session', 'fuse-overlayfs', 'passt', 'uidmap'],
];
const DISK_MIB = 2_048;
const MADE = 'image.json';

/** A Debian 13 with podman, of our own making: built once, and kept in the project's cache. */
export async function ensureGuest(say: (what: string) => void): Promise<Image> {
  const debian = findRecipe('debian:13', readConfig(computeConfig, {}));
  const recipe = {
    ...debian,
    name: 'debian:13-podman',
    packages: [...debian.packages, ...PODMAN],
    diskMib: DISK_MIB,
  };
  const directory = join(findCacheDir(), 'image-soak', imageDirectoryName(recipe));
  const made = join(directory, MADE);
  if (existsSync(made)) return JSON.parse(readFileSync(made, 'utf8')) as unknown as Image;
  const draft = `${directory}.draft`;
  for (const path of [directory, draft]) rmSync(path, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  const report = ({ message }: { message: string }) => say(message);
  const { kernelVersion } = await buildImage(recipe, draft, report, new AbortController().signal);
  const image: Image = {
    ...{ name: recipe.name, buildId: String(Date.now()), directory, kernelVersion },
    ...{ diskMib: DISK_MIB, boot: 'kernel' },
  };
  writeFileSync(join(draft, MADE), JSON.stringify(image));
  renameSync(draft, directory);
  return image;
}
