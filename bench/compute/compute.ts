import type { Figures } from '../measure/figures.ts';
import { benchMachines } from './machines.ts';
import { benchPrograms } from './programs.ts';

/** What a compute node adds to what it runs; `npm run bench -- compute machines` or `programs` for one of them. */
export async function benchCompute(figures: Figures, [part]: readonly string[]): Promise<void> {
  if (part !== 'machines') await benchPrograms(figures);
  if (part !== 'programs') await benchMachines(figures);
}
