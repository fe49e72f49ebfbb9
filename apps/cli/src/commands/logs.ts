import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { LogsOptions } from '../logs/show.ts';
import { parsePositive, parseTime } from '../options.ts';

export function addLogsCommand(program: Command, bind: Bind): void {
  program
    .command('logs')
    .description('show what the daemons of this computer log: those of "skerry up", and the units of systemd')
    .argument(
      '[daemons...]',
      'core, compute, gateway and others; of "skerry up" itself, skerry (default: all)',
    )
    .option('-f, --follow', 'keep showing new lines')
    .option(
      '--since <time>',
      'only what came since: 15m, 2h or 3d ago, or a time such as 2026-11-30T08:00',
      parseTime,
    )
    .option('-n, --lines <count>', 'only the last lines (default: 100; with --since, all)', parsePositive)
    .option('--data-dir <dir>', 'of the network of "skerry up" in this directory alone')
    .addHelpText(
      'after',
      `${examples('skerry logs', 'skerry logs compute --follow', 'skerry logs core gateway --since 15m', 'skerry logs --json -n 1000')}

Where systemd has a unit skerry-NAME, its lines come from the journal (some need root), otherwise from the files of
"skerry up". With --json, each line is the record that the daemon wrote, with the daemon's name.`,
    )
    .action(
      bind<LogsOptions, [string[]]>(async (context, options, [names]) =>
        (await import('../logs/show.ts')).showLogs(context, names, options),
      ),
    );
}
