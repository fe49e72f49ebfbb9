import type { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { EXIT } from '../exit-codes.ts';
import { renderDuration } from '../output/text.ts';
import { DRAIN, type Leaving, listStaying } from './drains.ts';
import type { Role } from './roles.ts';
import { unitOf } from './units.ts';

/** `works`: a process has the data directory and answers at none of its ports; `unknown`: nobody can tell. */
export type Presence = 'answers' | 'works' | 'none' | 'unknown';

export interface LeavePlan {
  readonly leaving: Leaving;
  readonly presence: Presence;
  /** Why it would not leave without --force. */
  readonly obstacle: AppError | undefined;
  readonly remains: readonly string[];
}

const RUNS: Readonly<Record<Presence, string>> = {
  answers: 'it runs and answers',
  works: 'it runs',
  none: 'it does not run',
  unknown: 'nobody can tell here whether it runs',
};

type Facts = Pick<Leaving, 'settings' | 'file' | 'isUnit'> & {
  readonly limitMs: number;
  readonly presence: Presence;
  /** The instances on a compute node that answers. */
  readonly instances: readonly string[] | undefined;
};

/** What is done before the daemon ends, as docs/joining.md has it. */
function drainSteps({ settings: { role, domain }, file, isUnit, limitMs, instances = [] }: Facts): string[] {
  const limit = renderDuration(limitMs);
  const steps: Readonly<Record<Role, readonly string[]>> = {
    compute: [
      ...Object.entries(DRAIN).map(([name, value]) => `write ${name}=${value} to ${file}`),
      isUnit
        ? `start ${unitOf(role)} again, so that the node says that it leaves`
        : `ask you to start the node again, so that it says that it leaves: skerry compute --settings ${shellWord(file)}`,
      `wait until its instances have moved, for ${limit}: ${instances.join(', ') || 'none is here'}`,
    ],
    gateway: [`wait until all connections below ${domain} have ended, for ${limit}`],
    core: [`wait until its peers have what this node has, for ${limit}`],
    monitor: [],
  };
  return [...steps[role]];
}

/** What `skerry leave` would do, one after the other. Pure. */
export function leaveSteps(facts: Facts): string[] {
  const { settings, isUnit, presence } = facts;
  const { role } = settings;
  return [
    ...(presence === 'answers' ? drainSteps(facts) : []),
    ...(isUnit ? [`stop and disable ${unitOf(role)}`] : []),
    ...(!isUnit && presence !== 'none'
      ? [`ask you to end "skerry ${role}", and wait until it has ended`]
      : []),
    ...(role === 'compute' ? ['take back what the node has announced'] : []),
  ];
}

/** Tells what leaving would do. Exit code 1 where it would be refused. */
export async function showLeavePlan({ leaving, presence, obstacle, remains }: LeavePlan): Promise<number> {
  const { context, settings, file, isUnit, options } = leaving;
  const { role, dataDir } = settings;
  const instances = role === 'compute' && presence === 'answers' ? await listStaying(settings) : undefined;
  const steps = leaveSteps({ settings, file, isUnit, presence, instances, limitMs: options.timeout });
  const isRefused = obstacle !== undefined && !options.force;
  const { hint } = (obstacle?.details ?? {}) as { hint?: string };
  const lines = [
    `This ${role} node (${RUNS[presence]}) would leave the network:`,
    ...steps.map((step, at) => `  ${at + 1}. ${step}`),
    ...remains.map((place) => `Stays on disk: ${place}`),
    ...(isRefused ? [`It would be refused: ${obstacle.message}`, ...(hint ? [`  ${hint}`] : [])] : []),
    '',
    'Nothing was changed (--dry-run).',
  ];
  context.output.result(
    {
      ...{ role, dry_run: true, settings_file: file, data_dir: dataDir, unit: isUnit ? unitOf(role) : null },
      ...{ presence, instances: instances ?? null, steps, remains },
      refused: isRefused ? { code: obstacle.code, error: obstacle.message, hint: hint ?? null } : null,
    },
    lines.join('\n'),
  );
  return isRefused ? EXIT.failed : EXIT.ok;
}
