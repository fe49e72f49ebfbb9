import { access, constants, open, readFile } from 'node:fs/promises';
import { findProgram, installPackages, isDebian, type Logger } from '@skerry/kit';
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

/** linux/capability.h */
const CAP_NET_ADMIN = 12n;
/** A mirror may be away for a moment, and another apt-get may hold the lock. */
const INSTALL_TRIES_MAX = 4;

/**
 * What keeps this machine from running virtual machines; empty when nothing does. As root on Debian, and where it is
 * allowed, missing programs are installed first.
 *
 * @param say is told what will be installed before it is done
 */
export async function preflight(
  mayInstall: boolean,
  log: Logger,
  signal: AbortSignal,
  say: (sentence: string) => void = (sentence) => log.warn(sentence),
): Promise<string[]> {
  let facts = await readHostFacts();
  const programs = [...new Set([...facts.missingPrograms, ...(await listMissing(SANDBOX_PROGRAMS))])];
  const missing = [...programs, ...(await listMissingLibraries())];
  if (missing.length > 0 && facts.isRoot && facts.isDebian && mayInstall) {
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
    isDebian: await isDebian(),
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
  for (const program of Object.keys(programs))
    if ((await findProgram(program)) === undefined) missing.push(program);
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
  await installPackages(packages, { triesMax, log, signal });
}
