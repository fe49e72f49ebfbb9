import { AppError, type InstanceView } from '@skerry/protocol/forms';
import { ownerOf } from '../address.ts';
import type { Context } from '../context.ts';
import { findInstance } from './find.ts';
import { renderInstance, renderInstances, reportOf } from './render.ts';

export interface InstanceListOptions {
  readonly all?: boolean;
  readonly address?: string;
  readonly status?: string;
}

const COLOURS: Partial<Record<InstanceView['phase'], 'green' | 'red' | 'yellow'>> = {
  running: 'green',
  failed: 'red',
  scheduled: 'yellow',
  preparing: 'yellow',
  starting: 'yellow',
  stopping: 'yellow',
};

export async function listInstances(context: Context, options: InstanceListOptions): Promise<void> {
  const { output, reader } = context;
  const { status, all } = options;
  if (status !== undefined && status !== 'running' && status !== 'stopped')
    throw new AppError('INVALID_PARAMETERS', 'a status must be running or stopped');
  if (all && options.address !== undefined)
    throw new AppError('INVALID_PARAMETERS', 'either --all or --address: whose instances are to be listed?');
  const address = all ? undefined : await ownerOf(context, options.address);
  const { instances, unreadable } = await reader.readAllInstances({ address, status });
  const paintPhase = (phase: InstanceView['phase']) => {
    const colour = COLOURS[phase];
    return colour === undefined ? phase : output.paint(colour, phase);
  };
  output.result(instances, renderInstances(instances, Date.now() / 1000, paintPhase, output.width));
  if (unreadable.length > 0) throw incomplete(unreadable);
  if (instances.length === 0) output.note('no instances');
}

type Unreadable = Awaited<ReturnType<Context['reader']['readAllInstances']>>['unreadable'];

/** What is missing in a list that was shown. */
function incomplete(unreadable: Unreadable): AppError {
  const [count, what] = [unreadable.length, unreadable.length === 1 ? 'instance' : 'instances'];
  return new AppError(
    'UNEXPECTED_ANSWER',
    `${count} ${what} cannot be read: ${unreadable[0]!.error.message}`,
    {
      details: {
        unreadable: unreadable.map((one) => ({
          instance_id: one.instanceId ?? null,
          error: one.error.message,
        })),
      },
    },
  );
}

export async function showInstance(context: Context, reference: string): Promise<void> {
  const report = await reportOf(context, await findInstance(context, reference));
  context.output.result(report, renderInstance(report, Date.now() / 1000));
}
