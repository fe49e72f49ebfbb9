import { powerOffMachines } from '@skerry/compute';
import { takeDataDir } from '@skerry/kit';
import { describeNode, hasFiles } from '../backup/role.ts';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import type { DaemonOptions } from './daemon.ts';

const WORDS = { off: 'is off', cut: 'did not shut down: its power was cut' } as const;

/**
 * Shuts the machines of this computer's compute node down. Exit code 1 where the power of one was cut. Throws NODE_RUNNING: the node
 * would start them again.
 */
export async function powerOff(context: Context, { settings }: DaemonOptions): Promise<number> {
  const { output } = context;
  const { directory } = await describeNode(context, 'compute', { ...(settings && { settings }) });
  const isUsed = await hasFiles(directory);
  using _alone = isUsed ? await takeDataDir(directory) : undefined;
  const all = await powerOffMachines(directory, ({ instance_id: id, state }) =>
    output.note(`${id} ${WORDS[state]}`),
  );
  output.result(all, all.length === 0 ? 'No virtual machine runs here.' : `${all.length} were powered off.`);
  return all.some(({ state }) => state === 'cut') ? EXIT.failed : EXIT.ok;
}
