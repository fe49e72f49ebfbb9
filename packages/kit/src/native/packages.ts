import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { programDirectories, programEnvironment, proxyVariables } from '../daemon/config.ts';
import { backoffMs } from '../daemon/failures.ts';
import type { Logger } from '../daemon/log.ts';
import { pause } from '../daemon/loop.ts';
import { runBriefly } from './compile.ts';

const INSTALL_TIMEOUT_MS = 15 * 60_000;
const RETRY_MS = { base: 2_000, max: 30_000 };

const can = (path: string, mode: number) =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/** Path of a program, where it is installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const directory of programDirectories())
    if (await can(join(directory, name), constants.X_OK)) return join(directory, name);
  return undefined;
}

/** A server that was just started upgrades itself, and holds the lock meanwhile: apt-get by itself would give up at once. */
export const APT_OPTIONS = ['-q', '-o', 'DPkg::Lock::Timeout=300'] as const;

/** Debian, or one of its children: apt-get is there. */
export const isDebian = () => can('/etc/debian_version', constants.R_OK);

export interface InstallOptions {
  /** A mirror may be away for a moment, and another apt-get may read the lists of packages. */
  readonly triesMax: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Installs packages of Debian, as root. The log tells of failures; rejects where the signal aborts. */
export async function installPackages(
  packages: readonly string[],
  { triesMax, log, signal }: InstallOptions,
): Promise<void> {
  // Scripts of packages are told that no init system runs, or only for one user, so that no daemon starts.
  const quiet = { DEBIAN_FRONTEND: 'noninteractive', SYSTEMD_OFFLINE: '1', RUNLEVEL: '1' };
  const env = { ...programEnvironment(), ...proxyVariables(), ...quiet };
  const apt = (...args: string[]) =>
    runBriefly('apt-get', [...APT_OPTIONS, ...args], { signal, timeoutMs: INSTALL_TIMEOUT_MS, env });
  for (let attempt = 1; ; attempt++) {
    const updated = await apt('update');
    const { code, said } =
      updated.code === 0 ? await apt('-y', '--no-install-recommends', 'install', ...packages) : updated;
    signal.throwIfAborted();
    if (code === 0) {
      log.info({ packages }, 'installed');
      return;
    }
    if (attempt >= triesMax) {
      log.error({ packages, code, said }, 'the packages could not be installed');
      return;
    }
    log.warn({ packages, code, said, attempt }, 'the packages could not be installed; retrying');
    await pause(backoffMs(attempt, RETRY_MS.base, RETRY_MS.max), signal);
  }
}
