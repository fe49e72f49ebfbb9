import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parseDiskGib, parseHttpUrl, parseMemoryMib, parsePositive } from '../options.ts';
import type { SchedulerOptions, SimulateOptions } from '../scheduler/actions.ts';

const withScheduler = (command: Command) =>
  command.option(
    '--scheduler <url>',
    'the scheduler (default: port 4030 beside the core node)',
    parseHttpUrl,
  );

/** Questions to a scheduler, below the command that runs one. */
export function addSchedulerCommands(program: Command, bind: Bind): void {
  const scheduler = program.commands.find((command) => command.name() === 'scheduler')!;

  withScheduler(scheduler.command('explain'))
    .description('why a machine is where it is, or why it waits')
    .argument('<instance>', 'its id or name')
    .addHelpText('after', examples('skerry scheduler explain web', 'skerry scheduler explain web --json'))
    .action(
      bind<SchedulerOptions>(async (context, options, [reference]) =>
        (await import('../scheduler/actions.ts')).explainPlacement(context, reference!, options),
      ),
    );

  withScheduler(scheduler.command('nodes'))
    .description('the compute nodes: what is free, their scores, and why they get nothing new')
    .addHelpText('after', examples('skerry scheduler nodes'))
    .action(
      bind<SchedulerOptions>(async (context, options) =>
        (await import('../scheduler/actions.ts')).listSchedulerNodes(context, options),
      ),
    );

  withScheduler(scheduler.command('plan'))
    .description('which machine is to run on which node, and what waits')
    .addHelpText('after', examples('skerry scheduler plan', 'skerry scheduler plan --json'))
    .action(
      bind<SchedulerOptions>(async (context, options) =>
        (await import('../scheduler/actions.ts')).showPlan(context, options),
      ),
    );

  withScheduler(scheduler.command('simulate'))
    .description('whether a machine of a size could be placed now; exit code 5 if not')
    .requiredOption('--cpu <cores>', 'virtual cores', parsePositive)
    .requiredOption('--memory <size>', 'MiB, or such as 2G', parseMemoryMib)
    .requiredOption('--disk <size>', 'GiB, or such as 1T', parseDiskGib)
    .addHelpText('after', examples('skerry scheduler simulate --cpu 2 --memory 2G --disk 20'))
    .action(
      bind<SimulateOptions>(async (context, options) =>
        (await import('../scheduler/actions.ts')).simulatePlacement(context, options),
      ),
    );
}
