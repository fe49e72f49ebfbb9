import { benchPrograms } from './compute-programs.ts';

/** What a compute node adds to what it runs. */
export async function benchCompute(): Promise<void> {
  await benchPrograms();
}
