import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKSUMS, SIGNATURE } from '@skerry/console';
import { ROOT } from '../source.ts';

/** Where a release is made, and when it says that it was: the same every time it is made of the same commit. */
export interface Release {
  /** What is handed out. */
  readonly files: string;
  /** The trees of the packages, as they are packed. */
  readonly staged: string;
  /** Seconds since 1970, of the commit: what a file's time is, and SOURCE_DATE_EPOCH to other programs. */
  readonly epoch: number;
}

function epochOf(): number {
  const { SOURCE_DATE_EPOCH: given } = process.env;
  if (given) return Number(given);
  // What was unpacked without its history has no commit.
  if (!existsSync(join(ROOT, '.git'))) return 0;
  return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' }));
}

export const createRelease = (build: string): Release => ({
  files: join(build, 'release'),
  staged: join(build, 'npm'),
  epoch: epochOf(),
});

/** Of the command's package, which has been staged. */
export const versionOf = ({ staged }: Release) =>
  (JSON.parse(readFileSync(join(staged, 'skerry/package.json'), 'utf8')) as { version: string }).version;

/** Of everything that is handed out, as sha256sum(1) writes and checks it. */
export function writeChecksums({ files }: Release): void {
  mkdirSync(files, { recursive: true });
  // It is of other checksums now.
  rmSync(join(files, SIGNATURE), { force: true });
  const names = readdirSync(files).filter((name) => name !== CHECKSUMS);
  const lines = names.sort().map((name) => {
    const digest = createHash('sha256')
      .update(readFileSync(join(files, name)))
      .digest('hex');
    return `${digest}  ${name}\n`;
  });
  writeFileSync(join(files, CHECKSUMS), lines.join(''));
}
