import {
  clearLeftGroups,
  clearLeftNetwork,
  computeConfig,
  type PoweredOff,
  powerOffMachines,
} from '@skerry/compute';
import { readConfig, takeDataDir } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import { withoutCommandVariables } from '../config.ts';
import type { Context } from '../context.ts';

/** The instances whose machines run below a compute node's data directory. */
export { findLeftMachines as findMachines } from '@skerry/compute';

/** Takes the control groups away that a compute node left which was killed. A node that works there has them in use. */
export async function clearGroups(dataDir: string): Promise<void> {
  try {
    using _alone = await takeDataDir(dataDir);
    await clearLeftGroups(dataDir);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'NODE_RUNNING') throw error;
  }
}

/** Shuts down what a compute node left running, and takes its taps and rules away. Throws NODE_RUNNING. */
export async function endMachines({ output, environment }: Context, dataDir: string): Promise<PoweredOff[]> {
  using _alone = await takeDataDir(dataDir);
  const ended = await powerOffMachines(dataDir, ({ instance_id: id }) => output.note(`${id} is off`));
  const config = readConfig(computeConfig, withoutCommandVariables(environment));
  await clearLeftNetwork({ ...config, dataDir });
  // Theirs, too, which outlived the node.
  await clearLeftGroups(dataDir);
  return ended;
}
