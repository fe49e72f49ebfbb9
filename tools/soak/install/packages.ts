import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { computeConfig } from '@skerry/compute';
import { readConfig } from '@skerry/kit';
import { run } from '../../../services/compute/src/host/run.ts';
import { IMAGE_FILES, type Image } from '../../../services/compute/src/images/image.ts';
import { aptSources, findRecipe } from '../../../services/compute/src/images/recipe.ts';
import { findCacheDir } from '../../../services/compute/src/testing/play.ts';
import { releaseDebian } from '../../debian/build.ts';
import { describePackages } from '../../debian/packages.ts';
import { releasePackages } from '../../release/npm.ts';
import { createRelease, type Release } from '../../release/release.ts';
import { ROOT } from '../../source.ts';

/** The folder of packages that the servers install from: two releases, and what these need of Debian. */

const FETCH_MS = 1_800_000;
const TOOL_MS = 600_000;
const MIB = 1024 ** 2;

/** The release that comes after, made of the same tree: only its number is another. */
const NEXT = '99.0.0';
const VERSIONS = ['package.json', 'node_modules/@skerry/kit/package.json'];

function raiseVersion({ staged }: Release): void {
  for (const path of VERSIONS.map((one) => join(staged, 'skerry', one))) {
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as object;
    writeFileSync(path, JSON.stringify({ ...manifest, version: NEXT }));
  }
}

/** Names of Debian's packages, of lines such as `libc6 (>= 2.36)` and `systemd | systemd-standalone-sysusers`. Pure. */
const namesOf = (depends: readonly string[]): string[] => [
  ...new Set(depends.map((one) => one.split('|')[0]!.replace(/\(.*/, '').trim())),
];

/** What a server of this image lacks for both packages, fetched by apt as it would on the server. */
async function fetchDependencies(image: Image, to: string, work: string): Promise<void> {
  const raw = join(work, 'image.raw');
  const base = join(image.directory, IMAGE_FILES.disk);
  await run('qemu-img', ['convert', '-O', 'raw', base, raw], { timeoutMs: TOOL_MS });
  const status = join(work, 'status');
  await run('debugfs', ['-R', `dump /var/lib/dpkg/status ${status}`, raw]);
  rmSync(raw);
  const sources = join(work, 'sources.list');
  writeFileSync(sources, aptSources(findRecipe('debian:12', readConfig(computeConfig, {}))));
  for (const path of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(work, path), { recursive: true });
  const options = [
    `Dir::State=${join(work, 'state')}`,
    `Dir::State::status=${status}`,
    `Dir::Cache=${join(work, 'cache')}`,
    `Dir::Etc::SourceList=${sources}`,
    'Dir::Etc::SourceParts=-',
    'APT::Sandbox::User=root',
    'APT::Install-Recommends=false',
  ].flatMap((one) => ['-o', one]);
  const own = describePackages('', '');
  const names = namesOf(own.flatMap(({ depends }) => depends)).filter((one) => one !== 'skerry');
  await run('apt-get', [...options, '-q', 'update'], { timeoutMs: FETCH_MS });
  await run('apt-get', [...options, '-q', '--yes', '--download-only', 'install', ...names], {
    timeoutMs: FETCH_MS,
  });
  cpSync(join(work, 'cache/archives'), to, {
    recursive: true,
    filter: (path) => !/(partial|lock)$/.test(path),
  });
  const index = await run('dpkg-scanpackages', ['--multiversion', '.'], { cwd: to, timeoutMs: TOOL_MS });
  writeFileSync(join(to, 'Packages'), index);
}

/** What the folder was made of: made anew where that has changed. Undefined where files are not committed. */
function keyOf(image: Image): string | undefined {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  return git('status', '--porcelain') === '' ? `${git('rev-parse', 'HEAD')} ${image.buildId}` : undefined;
}

/** Lays out the folder. Gives the names of the files of both releases. */
async function layFolder(folder: string, image: Image, work: string, say: (what: string) => void) {
  say('fetching what the packages need of Debian');
  await fetchDependencies(image, join(folder, 'debian'), work);
  say('making the packages of this release');
  const release = createRelease(work);
  await releasePackages(release);
  await releaseDebian({ ...release, files: join(folder, 'first') });
  say('making the packages of the next release');
  raiseVersion(release);
  await releaseDebian({ ...release, files: join(folder, 'next') });
  // The image that the compute node would build itself, which takes an hour where two emulations are on top of each other.
  const images = join(folder, 'images', image.directory.split('/').at(-1)!);
  cpSync(image.directory, images, { recursive: true });
}

/** A file system that holds the folder, of the project's cache; and the folder itself. */
export async function makeFolder(image: Image, say: (what: string) => void) {
  const home = join(findCacheDir(), 'install-soak');
  const made = { disk: join(home, 'packages.ext4'), folder: join(home, 'packages') };
  const stamp = join(home, 'made-of');
  const key = keyOf(image);
  if (key !== undefined && existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return made;
  rmSync(home, { recursive: true, force: true });
  const work = join(home, 'work');
  for (const path of [work, join(made.folder, 'debian')]) mkdirSync(path, { recursive: true });
  await layFolder(made.folder, image, work, say);
  rmSync(work, { recursive: true });
  const kib = Number(
    (await run('du', ['--summarize', '--apparent-size', '--block-size=1K', made.folder])).split('\t')[0],
  );
  const sizeMib = Math.ceil((kib * 1024 * 1.1) / MIB) + 64;
  await run('mke2fs', ['-q', '-t', 'ext4', '-L', 'packages', '-d', made.folder, made.disk, `${sizeMib}M`], {
    timeoutMs: TOOL_MS,
  });
  if (key !== undefined) writeFileSync(stamp, key);
  return made;
}
