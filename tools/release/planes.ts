import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { NATIVE } from '../../services/gateway/src/dataplane/native/build.ts';
import type { Release } from './release.ts';

/** By the architecture as Node calls it: Debian's compiler for it, and what has the compiler where it is not the machine's own. */
const COMPILERS = {
  x64: { compiler: 'x86_64-linux-gnu-gcc', packages: 'gcc-x86-64-linux-gnu libc6-dev-amd64-cross' },
  arm64: { compiler: 'aarch64-linux-gnu-gcc', packages: 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross' },
} as const;

/** Without a library that the machine would have to have, and without what tells where and when it was made. */
const FLAGS = [
  '-std=gnu11',
  '-O2',
  '-fstack-protector-strong',
  '-D_FORTIFY_SOURCE=2',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-static',
  '-s',
  '-Wl,--build-id=none',
];

/** The native data plane of the gateway, compiled for each architecture that a compiler is here for. Gives the names of the files. */
export function releasePlanes({ files }: Pick<Release, 'files'>): string[] {
  mkdirSync(files, { recursive: true });
  const sources = globSync('*.c', { cwd: NATIVE }).sort();
  return Object.entries(COMPILERS).flatMap(([arch, { compiler, packages }]) => {
    const name = `skerry-plane-${arch}`;
    if (spawnSync(compiler, ['--version']).status !== 0) {
      console.error(`${name} is not made: ${compiler} is not here (on Debian, apt install ${packages})`);
      return [];
    }
    // Paths would be in it: the sources are named as they are seen from their folder.
    execFileSync(compiler, [...FLAGS, ...sources, '-o', join(files, name)], {
      cwd: NATIVE,
      stdio: 'inherit',
    });
    return [name];
  });
}
