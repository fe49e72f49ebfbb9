import { access, constants, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { backoffMs, type Logger, pause } from '@skerry/kit';
import { programDirectories } from '../config.ts';
import {
  type HostFacts,
  isNeeded,
  libraryPaths,
  listObstacles,
  PROGRAMS,
  PYTHON_LIBRARIES,
  packagesFor,
  SANDBOX_PROGRAMS,
} from './requirements.ts';
import { run } from './run.ts';

/** linux/capability.h */
const CAP_NET_ADMIN = 12n;
const INSTALL_TIMEOUT_MS = 15 * 60_000;
/** A mirror may be away for a moment, and another apt-get may hold the lock. */
const INSTALL_TRIES_MAX = 4;
const INSTALL_RETRY_MS = { base: 2_000, max: 30_000 };

/**
 * What keeps this machine from running virtual machines; empty when nothing does. As root on Debian, and where it is
 * allowed, missing programs are installed first.
 *
 * @param say is told what will be installed before it is done
 */
export async function preflight(
  installPackages: boolean,
  log: Logger,
  signal: AbortSignal,
  say: (sentence: string) => void = (sentence) => log.warn(sentence),
): Promise<string[]> {
  let facts = await readHostFacts();
  const { isRoot, isDebian } = facts;
  const programs = [...new Set([...facts.missingPrograms, ...(await listMissing(SANDBOX_PROGRAMS))])];
  const missing = [...programs, ...(await listMissingLibraries())];
  if (missing.length > 0 && isRoot && isDebian && installPackages) {
    // What programs can do without is not worth a long wait at each start without a mirror.
    await installMissing(missing, programs.length > 0 ? INSTALL_TRIES_MAX : 1, log, signal, say);
    facts = await readHostFacts();
  }
  return listObstacles(facts);
}

export async function readHostFacts(): Promise<HostFacts> {
  return {
    architecture: process.arch,
    isLinux: process.platform === 'linux',
    isRoot: process.geteuid?.() === 0,
    isDebian: await can('/etc/debian_version', constants.R_OK),
    hasNetAdmin: hasCapability(await readFile('/proc/self/status', 'utf8').catch(() => ''), CAP_NET_ADMIN),
    canOpenTun: await open('/dev/net/tun', 'r+').then(
      async (file) => {
        await file.close();
        return true;
      },
      () => false,
    ),
    canWriteNetworkSettings: await can('/proc/sys/net/ipv6/conf/all/forwarding', constants.W_OK),
    missingPrograms: await listMissing(PROGRAMS),
  };
}

/** Reads the effective capabilities in /proc/PID/status (proc(5)). */
export function hasCapability(status: string, capability: bigint): boolean {
  const digits = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return digits !== undefined && ((BigInt(`0x${digits}`) >> capability) & 1n) === 1n;
}

/** What sandboxes cannot do without. */
export async function listMissingSandboxPrograms(): Promise<string[]> {
  return (await listMissing(SANDBOX_PROGRAMS)).filter(isNeeded);
}

async function listMissing(programs: Readonly<Record<string, string>>): Promise<string[]> {
  const missing: string[] = [];
  for (const program of Object.keys(programs)) if (!(await isInstalled(program))) missing.push(program);
  return missing;
}

/** By the names that programs import. */
async function listMissingLibraries(): Promise<string[]> {
  const missing: string[] = [];
  for (const name of Object.keys(PYTHON_LIBRARIES)) {
    const found = await Promise.all(libraryPaths(name).map((path) => can(path, constants.R_OK)));
    if (!found.includes(true)) missing.push(name);
  }
  return missing;
}

async function isInstalled(program: string): Promise<boolean> {
  for (const directory of programDirectories())
    if (await can(join(directory, program), constants.X_OK)) return true;
  return false;
}

async function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

async function installMissing(
  missing: readonly string[],
  triesMax: number,
  log: Logger,
  signal: AbortSignal,
  say: (sentence: string) => void,
): Promise<void> {
  const packages = packagesFor(missing);
  say(
    `installing packages for virtual machines and programs: apt-get install --no-install-recommends ${packages.join(' ')} (SKERRY_COMPUTE_INSTALL_PACKAGES=no turns this off)`,
  );
  // None of these packages is a daemon; scripts of packages that come along are told that no init system runs.
  const options = {
    signal,
    timeoutMs: INSTALL_TIMEOUT_MS,
    env: { DEBIAN_FRONTEND: 'noninteractive', SYSTEMD_OFFLINE: '1' },
  };
  for (let attempt = 1; ; attempt++)
    try {
      await run('apt-get', ['-q', 'update'], options);
      await run('apt-get', ['-q', '-y', '--no-install-recommends', 'install', ...packages], options);
      log.info({ packages }, 'installed');
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (attempt >= triesMax) {
        log.error({ err: error }, 'the packages could not be installed');
        return;
      }
      log.warn({ err: error, attempt }, 'the packages could not be installed; retrying');
      await pause(backoffMs(attempt, INSTALL_RETRY_MS.base, INSTALL_RETRY_MS.max), signal);
    }
}
