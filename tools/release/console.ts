import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildConsole, checksumsOf } from '@skerry/console';
import { readManifest } from './manifests.ts';
import type { Release } from './release.ts';
import { stageMade } from './stage.ts';

/**
 * The console's files in a tarball: unpacked below any web server, the page begins at the core node that `?core=` names. Beside it, the
 * checksum of each file, so that what somebody serves can be compared.
 */
export async function releaseConsole(release: Release): Promise<string[]> {
  const { files } = await buildConsole();
  const staged = join(dirname(release.staged), 'console');
  rmSync(staged, { recursive: true, force: true });
  stageMade(files, staged);
  mkdirSync(release.files, { recursive: true });
  const name = `skerry-console-${readManifest('apps/console').version}.tgz`;
  const same = ['--sort=name', `--mtime=@${release.epoch}`, '--owner=0', '--group=0', '--numeric-owner'];
  const args = [
    ...same,
    '--use-compress-program',
    'gzip -9n',
    '--create',
    '--file',
    join(release.files, name),
  ];
  execFileSync('tar', [...args, '--directory', staged, '.']);
  const sums = name.replace(/\.tgz$/, '.sha256');
  writeFileSync(join(release.files, sums), checksumsOf(files));
  return [name, sums];
}
