import { existsSync, readFileSync } from 'node:fs';

/** One that has ended may still wait to be reaped by the machine's first process. */
export const isAlive = (pid: number) =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
