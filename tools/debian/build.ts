import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeForShells } from '../manual/pages.ts';
import { type Release, versionOf } from '../release/release.ts';
import { writeJson } from '../release/stage.ts';
import { listInside, renderBill } from './bill.ts';
import { listDocuments } from './documents.ts';
import { renderOverrides } from './lintian.ts';
import { type DebianPackage, describePackages, renderControl } from './packages.ts';
import { readNodeManifest, settle, stageTree } from './tree.ts';

const KIB = 1024;
const PROGRAM_MODE = 0o755;

const architecture = () => execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
/** `glibc 2.36` */
const libcVersion = () =>
  execFileSync('getconf', ['GNU_LIBC_VERSION'], { encoding: 'utf8' }).trim().split(' ')[1]!;

function write(path: string, text: string | Uint8Array, mode?: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, mode === undefined ? {} : { mode });
}

/** deb-md5sums(5): what `dpkg --verify` compares. */
function listSums(root: string): string {
  // Not by a glob: it leaves out names that begin with a dot.
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (path) => !path.startsWith('DEBIAN') && lstatSync(join(root, path)).isFile(),
  );
  return files
    .sort()
    .map(
      (path) =>
        `${createHash('md5')
          .update(readFileSync(join(root, path)))
          .digest('hex')}  ${path}\n`,
    )
    .join('');
}

async function stage(one: DebianPackage, version: string, root: string, release: Release): Promise<void> {
  const command = join(release.staged, 'skerry');
  rmSync(root, { recursive: true, force: true });
  if (one.hasTree) {
    await stageTree(command, root);
    writeForShells(root);
  }
  for (const { name, content } of listDocuments(one, version, release.epoch))
    write(join(root, 'usr/share/doc', one.name, name), content);
  write(join(root, 'usr/share/lintian/overrides', one.name), renderOverrides(one.name, one.hasTree));
  for (const { path, text, mode } of one.files) write(join(root, path), text, mode);
  const sizeKib = Math.ceil(settle(root, release.epoch) / KIB);
  const control = renderControl(one, { version, architecture: architecture(), sizeKib });
  write(join(root, 'DEBIAN/control'), control);
  write(join(root, 'DEBIAN/conffiles'), one.conffiles.map((path) => `${path}\n`).join(''));
  write(join(root, 'DEBIAN/md5sums'), listSums(root));
  for (const [name, text] of Object.entries(one.scripts))
    write(join(root, 'DEBIAN', name), text, PROGRAM_MODE);
  settle(root, release.epoch);
}

/** The Debian packages for this machine's architecture, and what is inside each. Gives the names of the files. */
export async function releaseDebian(release: Release): Promise<string[]> {
  const version = versionOf(release);
  const made: string[] = [];
  for (const one of describePackages(version, libcVersion())) {
    const root = join(dirname(release.staged), 'debian', one.name);
    await stage(one, version, root, release);
    const file = `${one.name}_${version}_${architecture()}.deb`;
    mkdirSync(release.files, { recursive: true });
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zzstd', '--build', root, join(release.files, file)], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(release.epoch) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const bill = file.replace(/deb$/, 'cdx.json');
    const inside = one.hasTree ? [...listInside(root), readNodeManifest()] : [];
    const about = { version, architecture: architecture(), epoch: release.epoch };
    writeJson(join(release.files, bill), renderBill(one, about, inside));
    made.push(file, bill);
  }
  return made;
}
