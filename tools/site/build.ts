import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { VERSION } from '@skerry/kit';
import type { Release } from '../release/release.ts';
import { installLocked } from '../release/run-npm.ts';
import { findDeadLinks } from './links.ts';
import { stageSite } from './stage.ts';

const ARCHIVE_BYTES_MAX = 256 * 1024 ** 2;

/**
 * Builds the documentation site.
 * @param build where everything is made: `site-source/`, and the site itself in `site/`
 * @param base where it will be served: `/` or `/docs/`
 * @returns the directory of the site
 * @throws Error with every link that leads nowhere
 */
export async function buildSite(build: string, base: string): Promise<string> {
  const [source, site] = [join(build, 'site-source'), join(build, 'site')];
  await stageSite(source, base);
  installLocked(source);
  rmSync(site, { recursive: true, force: true });
  const vitepress = join(source, 'node_modules/vitepress/bin/vitepress.js');
  execFileSync(process.execPath, [vitepress, 'build', '.', '--outDir', site], {
    cwd: source,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const dead = findDeadLinks(site, base);
  if (dead.length > 0) throw new Error(`the site has links that lead nowhere:\n${dead.join('\n')}`);
  return site;
}

/** The site in one file, for whoever serves it. */
export async function releaseSite({ files, staged, epoch }: Release): Promise<readonly string[]> {
  const site = await buildSite(dirname(staged), '/');
  mkdirSync(files, { recursive: true });
  const name = `skerry-docs-${VERSION}.tar.gz`;
  const owner = [
    '--sort=name',
    `--mtime=@${epoch}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
  ];
  const tar = execFileSync('tar', [...owner, '--create', '--directory', site, '.'], {
    maxBuffer: ARCHIVE_BYTES_MAX,
  });
  // Without the time of its making.
  writeFileSync(join(files, name), gzipSync(tar, { level: 9 }));
  return [name];
}
