import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listInside } from '../debian/bill.ts';
import { LAUNCHER } from '../debian/layout.ts';
import { readNodeManifest, settle, stageTree } from '../debian/tree.ts';
import { type Release, versionOf } from '../release/release.ts';
import { writeJson } from '../release/stage.ts';
import { listPackages, makeBase } from './base.ts';
import { renderImageBill } from './bill.ts';
import { archiveName, ENTRYPOINT, ENVIRONMENT, FILES, imageName, STATE, USER } from './layout.ts';
import { addLayer, finishLayout, type ImageDescription } from './oci.ts';

/** As Go, and so every container program, names what Node calls `x64`. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const PROGRAM_MODE = 0o755;
const STATE_MODE = 0o700;

/** The same bytes for the same files: in the order of their names, of nobody, without what a file system adds. */
function tar(epoch: number, to: string, args: readonly string[]): void {
  const options = [
    ...['--format=posix', '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime'],
    ...['--sort=name', '--numeric-owner', `--mtime=@${epoch}`, '--file', to],
  ];
  execFileSync('tar', [...options, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
}

function write(path: string, text: string, mode?: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, mode === undefined ? {} : { mode });
}

/** The image's upper layer: Node, the command, every daemon; and a directory for what they keep, which is the user's own. */
async function makeOwn(release: Release, root: string, to: string): Promise<void> {
  rmSync(root, { recursive: true, force: true });
  await stageTree(join(release.staged, 'skerry'), root);
  for (const [path, text] of Object.entries(FILES)) write(join(root, path), text);
  write(join(root, ENTRYPOINT), LAUNCHER, PROGRAM_MODE);
  mkdirSync(join(root, 'dev'));
  settle(root, release.epoch);
  tar(release.epoch, to, ['--create', '--owner=0', '--group=0', '--directory', root, '.']);
  const state = STATE.slice(1);
  mkdirSync(join(root, state), { recursive: true });
  chmodSync(join(root, state), STATE_MODE);
  const owner = [`--owner=${USER.id}`, `--group=${USER.id}`];
  tar(release.epoch, to, ['--append', ...owner, '--directory', root, `./${state}`]);
}

function describeImage(version: string, architecture: string, epoch: number): ImageDescription {
  return {
    name: imageName(version),
    architecture,
    epoch,
    user: `${USER.id}:${USER.id}`,
    environment: ENVIRONMENT,
    entrypoint: [ENTRYPOINT],
    command: ['--help'],
    workingDirectory: STATE,
    volumes: [STATE],
    labels: {
      'org.opencontainers.image.title': 'Skerry',
      'org.opencontainers.image.description': 'A decentralised cloud that people run themselves',
      'org.opencontainers.image.version': version,
    },
  };
}

/** The container image for this machine's architecture, and what is inside. Gives the names of the files. Needs root. */
export async function releaseImage(release: Release): Promise<string[]> {
  const version = versionOf(release);
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new Error(`there is no image for ${process.arch}`);
  const work = join(dirname(release.staged), 'image');
  const [base, own, root, layout] = ['base.tar', 'own.tar', 'root', 'layout'].map((name) => join(work, name));
  rmSync(work, { recursive: true, force: true });
  mkdirSync(layout!, { recursive: true });
  makeBase(base!);
  await makeOwn(release, root!, own!);
  const layers = [
    await addLayer(layout!, base!, 'packages of Debian'),
    await addLayer(layout!, own!, `skerry ${version}`),
  ];
  finishLayout(layout!, describeImage(version, architecture, release.epoch), layers);
  mkdirSync(release.files, { recursive: true });
  const file = archiveName(version, architecture);
  const owner = ['--owner=0', '--group=0', '--mode=u=rwX,go=rX'];
  tar(release.epoch, join(release.files, file), [
    ...['--create', ...owner, '--directory', layout!],
    ...['oci-layout', 'index.json', 'blobs'],
  ]);
  const bill = file.replace(/oci\.tar$/, 'image.cdx.json');
  const inside = [...listInside(root!), readNodeManifest()];
  const about = { name: imageName(version), version, epoch: release.epoch };
  writeJson(join(release.files, bill), renderImageBill(about, inside, listPackages(base!)));
  for (const path of [base!, own!]) rmSync(path);
  return [file, bill];
}
