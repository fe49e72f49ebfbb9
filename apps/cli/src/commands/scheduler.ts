import type { Command } from 'commander';
import { addAdoptCommand } from '../adopting/commands.ts';
import { type Bind, examples } from '../bind.ts';
import { parseDiskGib, parseHttpUrl, parseMemoryMib, parsePositive } from '../options.ts';
import type { SchedulerOptions, SimulateOptions } from '../scheduler/placements.ts';

const withScheduler = (command: Command) =>
  command.option('--scheduler <url>', 'the scheduler (default: where the network says)', parseHttpUrl);

/** Questions to a scheduler, below the command that runs one. */
export function addSchedulerCommands(program: Command, bind: Bind): void {
  const scheduler = program.commands.find((command) => command.name() === 'scheduler')!;

  withScheduler(scheduler.command('explain'))
    .description('explain why an instance is where it is, or why it waits')
    .argument('<instance>', 'instance id or name')
    .addHelpText('after', examples('skerry scheduler explain web', 'skerry scheduler explain web --json'))
    .action(
      bind<SchedulerOptions>(async (context, options, [reference]) =>
        (await import('../scheduler/placements.ts')).explainPlacement(context, reference!, options),
      ),
    );

  withScheduler(scheduler.command('nodes'))
    .description('list compute nodes: free capacity, scores, and why they get nothing new')
    .addHelpText('after', examples('skerry scheduler nodes'))
    .action(
      bind<SchedulerOptions>(async (context, options) =>
        (await import('../scheduler/placements.ts')).listSchedulerNodes(context, options),
      ),
    );

  withScheduler(scheduler.command('plan'))
    .description('show which instance runs on which node, and what waits')
    .addHelpText('after', examples('skerry scheduler plan', 'skerry scheduler plan --json'))
    .action(
      bind<SchedulerOptions>(async (context, options) =>
        (await import('../scheduler/placements.ts')).showPlan(context, options),
      ),
    );

  withScheduler(scheduler.command('simulate'))
    .description('check whether an instance of this size could be placed now; exit code 5 if not')
    .requiredOption('--cpu <cores>', 'virtual cores', parsePositive)
    .requiredOption('--memory <size>', 'MiB, or with a unit: 2G', parseMemoryMib)
    .requiredOption('--disk <size>', 'GiB, or with a unit: 1T', parseDiskGib)
    .addHelpText('after', examples('skerry scheduler simulate --cpu 2 --memory 2G --disk 20'))
    .action(
      bind<SimulateOptions>(async (context, options) =>
        (await import('../scheduler/placements.ts')).simulatePlacement(context, options),
      ),
    );

  addAdoptCommand(scheduler, 'scheduler', bind);
}
