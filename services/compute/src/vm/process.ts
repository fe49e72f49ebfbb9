import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readTextIfAny } from '@skerry/kit';
import { uuidOf } from './command-line.ts';
import { MACHINE_FILES } from './machine.ts';

/** What /proc says of a process, as far as it matters here. */
export interface ProcessFacts {
  readonly executable: string;
  readonly directory: string;
  readonly args: readonly string[];
}

/** It ended before or while it was read, or is another user's. */
const UNREADABLE: ReadonlySet<unknown> = new Set(['ENOENT', 'ESRCH', 'EACCES']);

/** The facts of a process, or undefined when there is none, or only its remains. */
export async function readProcess(pid: number): Promise<ProcessFacts | undefined> {
  try {
    const executable = await readlink(`/proc/${pid}/exe`);
    const directory = await readlink(`/proc/${pid}/cwd`);
    const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    return { executable, directory, args };
  } catch (error) {
    if (UNREADABLE.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

/**
 * Whether a process is the QEMU of this machine. Numbers of processes are used again, so the number alone says nothing:
 * the program, its working directory and the machine's UUID must all fit.
 * @param directory as the kernel names it
 */
export function isOurQemu(facts: ProcessFacts, directory: string, machineId: string): boolean {
  // The kernel marks a program that was replaced by an upgrade while it runs.
  const program = basename(facts.executable.replace(/ \(deleted\)$/, ''));
  const uuid = facts.args.indexOf('-uuid');
  return (
    program.startsWith('qemu-system-') &&
    facts.directory === directory &&
    uuid >= 0 &&
    facts.args[uuid + 1] === uuidOf(machineId)
  );
}

/** The machine that a QEMU runs, by the UUID that it was given; undefined of other programs, and without one. */
export function machineIdIn({ args }: ProcessFacts): string | undefined {
  const uuid = args[args.indexOf('-uuid') + 1];
  return args.includes('-uuid') && uuid !== undefined ? uuid.replaceAll('-', '') : undefined;
}

/** The number of the QEMU that runs a machine, if one does and has written it down. */
export async function findQemu(directory: string, machineId: string): Promise<number | undefined> {
  const text = await readTextIfAny(join(directory, MACHINE_FILES.pid));
  const pid = Number(text?.trim());
  return (await isQemuOf(pid, directory, machineId)) ? pid : undefined;
}

/** The same, looked for among all processes: one that was started an instant ago has written nothing yet. */
export async function searchQemu(directory: string, machineId: string): Promise<number | undefined> {
  const place = await placeOf(directory);
  for (const name of await readdir('/proc')) {
    if (await isQemuAt(Number(name), place, machineId)) return Number(name);
  }
  return undefined;
}

export async function isQemuOf(pid: number, directory: string, machineId: string): Promise<boolean> {
  return isQemuAt(pid, await placeOf(directory), machineId);
}

/** A directory as the kernel names it, whatever links lead there. */
const placeOf = (directory: string): Promise<string> => realpath(directory).catch(() => directory);

async function isQemuAt(pid: number, place: string, machineId: string): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 1) return false;
  const facts = await readProcess(pid);
  return facts !== undefined && isOurQemu(facts, place, machineId);
}
