import { access, constants, readdir, stat, statfs } from 'node:fs/promises';
import { networkInterfaces, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { examineHost } from '@skerry/compute';
import type { Environment } from '../config.ts';
import type { Role, RoleSettings } from '../joining/roles.ts';
import type { MachineFacts } from './facts.ts';

/** What the server has. Nothing is changed by looking. */

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const KEY = /(^|\.)key$|^vrf-keys\.json$/;
/** Where programs are that an ordinary user's PATH does not name. */
const SYSTEM_PROGRAMS = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** Programs that a role runs, and Debian's packages; those of a compute node it knows itself. */
const PROGRAMS: Readonly<Partial<Record<Role, Readonly<Record<string, string>>>>> = {
  monitor: { ping: 'iputils-ping' },
};

const can = (path: string, mode: number) =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/** The directory, or where it would be made. */
async function nearestDirectory(path: string): Promise<string> {
  return (await can(path, constants.F_OK)) || path === dirname(path) ? path : nearestDirectory(dirname(path));
}

async function listKeys(directory: string) {
  const names = await readdir(directory).catch(() => []);
  const paths = names.filter((name) => KEY.test(name)).map((name) => join(directory, name));
  return Promise.all(paths.map(async (path) => ({ path, mode: (await stat(path)).mode })));
}

async function listMissing(role: Role, environment: Environment) {
  const directories = [...(environment.PATH ?? '').split(':').filter(Boolean), ...SYSTEM_PROGRAMS];
  const found = async (program: string) =>
    (await Promise.all(directories.map((one) => can(join(one, program), constants.X_OK)))).includes(true);
  const missing: [string, string][] = [];
  for (const [program, name] of Object.entries(PROGRAMS[role] ?? {}))
    if (!(await found(program))) missing.push([program, name]);
  return missing;
}

export async function readMachineFacts(
  { role, dataDir }: Pick<RoleSettings, 'role' | 'dataDir'>,
  environment: Environment,
): Promise<MachineFacts> {
  const place = await nearestDirectory(dataDir);
  const { bavail, bsize } = await statfs(place);
  return {
    platform: process.platform,
    nodeVersion: process.versions.node,
    isRoot: process.geteuid?.() === 0,
    memoryMib: Math.floor(totalmem() / MIB),
    diskFreeGib: Math.floor((bavail * bsize) / GIB),
    isDataWritable: await can(place, constants.W_OK),
    keys: await listKeys(dataDir),
    host: role === 'compute' ? await examineHost() : undefined,
    missingPrograms: await listMissing(role, environment),
  };
}

export const listOwnAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
