import type { VerifierPool } from '../../services/core/src/intake/verify/pool.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';

/** Who works for a message. Seconds of processor time. */
export interface Parts {
  /** Threads that verify. */
  readonly verify: number;
  /** The thread that decides and formats rows. */
  readonly main: number;
  /** Garbage collection, libuv and the compiler, of all threads of this process. */
  readonly others: number;
  readonly database: number;
}

export const PARTS = {
  verify: 'threads that verify',
  main: 'thread that decides and formats',
  others: 'other threads of the process',
  database: 'PostgreSQL',
} as const satisfies Record<keyof Parts, string>;

export const sumOf = ({ verify, main, others, database }: Parts) => verify + main + others + database;

export const secondsOf = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1e6;

/** What each used so far. */
export async function readParts({ workers }: Pick<VerifierPool, 'workers'>): Promise<Parts> {
  const threads = await Promise.all(workers.map((worker) => worker.cpuUsage()));
  const verify = threads.reduce((sum, one) => sum + secondsOf(one), 0);
  const main = secondsOf(process.threadCpuUsage());
  const all = secondsOf(process.cpuUsage());
  return { verify, main, others: all - verify - main, database: readProcessorSeconds([process.pid]) - all };
}

export const spentOf = (before: Parts, after: Parts): Parts => ({
  verify: after.verify - before.verify,
  main: after.main - before.main,
  others: after.others - before.others,
  database: after.database - before.database,
});
