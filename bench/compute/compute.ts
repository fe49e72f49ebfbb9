import { benchMachines } from './machines.ts';
import { benchPrograms } from './programs.ts';

/** What a compute node adds to what it runs; `npm run bench -- compute machines` or `programs` for one of them. */
export async function benchCompute(): Promise<void> {
  const part = process.argv[3];
  if (part !== 'machines') await benchPrograms();
  if (part !== 'programs') await benchMachines();
}
