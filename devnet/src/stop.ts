import { existsSync } from 'node:fs';
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { acquireLock } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { daemonsLockFile, LEFTOVER_WAIT_MS, ownLockFile } from './locks.ts';

/** What a devnet was when it was asked to stop. `ending`: killed, and its daemons were still stopping. */
export type DevnetState = 'running' | 'ending' | 'stopped';

/** How long each is waited for before it is killed. */
export interface StopLimits {
  readonly devnetMs: number;
  readonly daemonsMs: number;
}

/** Three rows of daemons, each of which may take as long as a daemon may. */
const STOP_LIMITS: StopLimits = { devnetMs: 75_000, daemonsMs: LEFTOVER_WAIT_MS };
const KILL_WAIT_MS = 10_000;

/** Undefined where it is free; else the processes that have the file open, as far as this user may see them. */
async function findHolders(file: string, waitMs: number): Promise<number[] | undefined> {
  const lock = await acquireLock(file, { waitMs });
  lock?.[Symbol.dispose]();
  return lock === undefined ? findProcessesWith(file) : undefined;
}

async function findProcessesWith(file: string): Promise<number[]> {
  const path = await realpath(file);
  const found: number[] = [];
  for (const pid of (await readdir('/proc')).map(Number).filter(Number.isInteger)) {
    if (pid === process.pid) continue;
    // It ended meanwhile, or is another user's.
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const open = await Promise.all(
      descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => undefined)),
    );
    if (open.includes(path)) found.push(pid);
  }
  return found;
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Who wrote the file, if it still has it open: what the file says may be of an earlier one. */
async function findOwner(file: string, holders: readonly number[]): Promise<number[]> {
  const owner = Number((await readFile(file, 'utf8')).trim());
  return holders.filter((pid) => pid === owner);
}

/**
 * Ends the devnet of a directory with all its daemons, whoever started it and whether that one is still there: kindly at first.
 * What it keeps, and its virtual machines, stay. Resolves when nothing of it runs.
 *
 * @param onWait told once when somebody is waited for
 * @throws AppError DEVNET_RUNNING where it does not end, or is another user's
 */
export async function stopDevnet(
  dataDir: string,
  onWait: (was: DevnetState) => void,
  limits: StopLimits = STOP_LIMITS,
): Promise<DevnetState> {
  const [own, daemons] = [ownLockFile(dataDir), daemonsLockFile(dataDir)];
  if (!existsSync(own)) return 'stopped';
  const parents = await findHolders(own, 0);
  if (parents !== undefined) {
    onWait('running');
    signalAll(await findOwner(own, parents), 'SIGTERM');
    const late = await findHolders(own, limits.devnetMs);
    if (late !== undefined) signalAll(await findOwner(own, late), 'SIGKILL');
  }
  const left = existsSync(daemons) ? await findHolders(daemons, 0) : undefined;
  const was = parents !== undefined ? 'running' : left !== undefined ? 'ending' : 'stopped';
  if (left === undefined) return was;
  if (was === 'ending') onWait(was);
  const late = await findHolders(daemons, limits.daemonsMs);
  if (late === undefined) return was;
  signalAll(late, 'SIGKILL');
  if ((await findHolders(daemons, KILL_WAIT_MS)) !== undefined)
    throw new AppError(
      'DEVNET_RUNNING',
      `processes of the network in ${dataDir} do not end: ${late.join(', ')}`,
    );
  return was;
}
