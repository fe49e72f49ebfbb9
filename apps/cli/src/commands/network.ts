import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { ConsoleOptions } from '../network/console.ts';
import type { CheckOptions } from '../network/console-check.ts';
import type { DownOptions } from '../network/down.ts';
import type { StatusOptions } from '../network/status.ts';
import type { UpOptions } from '../network/up.ts';
import { parseDurationMs, parseHttpUrl, parseListenPort, parsePositive } from '../options.ts';

function addConsole(program: Command, bind: Bind): void {
  program
    .command('console')
    .description("serve the console from this computer, until Ctrl-C: no node's page has to be trusted")
    .option(
      '--port <port>',
      'where the page is, on this computer alone (default: any that is free)',
      parseListenPort,
    )
    .option('--check', 'serve nothing: compare what the core node serves with this console, and end')
    .option(
      '--release <folder>',
      'with --check: compare with the signed checksums of a release, which are in this folder',
    )
    .option('--by <address>', 'with --release: who has to have signed them')
    .addHelpText(
      'after',
      examples(
        'skerry console',
        'skerry console --core https://core.example.org --port 8090',
        'skerry console --check --core https://core.example.org',
        'skerry console --check --release . --by 0x1234567890123456789012345678901234567890',
      ),
    )
    .action(
      bind<ConsoleOptions & CheckOptions & { readonly check?: boolean }>(async (context, options) =>
        options.check || options.release !== undefined || options.by !== undefined
          ? (await import('../network/console-check.ts')).checkConsole(context, options)
          : (await import('../network/console.ts')).showConsole(context, options),
      ),
    );
}

function addDown(program: Command, bind: Bind): void {
  program
    .command('down')
    .description('end the network of this computer, also one whose "skerry up" was killed; data stay')
    .option('--machines', 'shut its virtual machines down, too; their disks stay')
    .option('--data-dir <dir>', "the network's directory (default: of the one that runs)")
    .addHelpText('after', examples('skerry down', 'skerry down --machines'))
    .action(
      bind<DownOptions>(async (context, options) =>
        (await import('../network/down.ts')).down(context, options),
      ),
    );
}

export function addNetworkCommands(program: Command, bind: Bind): void {
  program
    .command('up')
    .description('run a whole network on this computer, until Ctrl-C')
    .option('--core-port <port>', 'core node (default: 4024)', parseListenPort)
    .option('--scheduler-port <port>', 'scheduler (default: 4030)', parseListenPort)
    .option('--compute-port <port>', 'compute node (default: 4020)', parseListenPort)
    .option('--credit-port <port>', 'credit service (default: 4032)', parseListenPort)
    .option('--http-port <port>', "gateway's HTTP (default: 8080)", parseListenPort)
    .option('--https-port <port>', "gateway's HTTPS (default: 8443)", parseListenPort)
    .option('--gateway-port <port>', "gateway's API (default: 8081)", parseListenPort)
    .option('--status-port <port>', 'status service (default: 4031)', parseListenPort)
    .option(
      '--hour <duration>',
      "length of the monitor's hour, for example 20s for early scores (default: 1h)",
      parseDurationMs,
    )
    .option('--cores <count>', 'number of core nodes, each with its own database (default: 1)', parsePositive)
    .option('--data-dir <dir>', 'directory for all data (default: devnet in your data directory)')
    .option('--quiet', 'show only warnings and errors from the daemons')
    .option('--verbose', 'show also what the daemons do again and again, such as archives')
    .addHelpText(
      'after',
      examples(
        'skerry up',
        'skerry up --hour 20s',
        'skerry up --cores 3',
        'skerry up --core-port 5024 --data-dir /srv/skerry',
      ),
    )
    .action(
      bind<UpOptions>(async (context, options) => (await import('../network/up.ts')).up(context, options)),
    );

  addConsole(program, bind);

  addDown(program, bind);

  program
    .command('status')
    .description('show which services answer')
    .option('--scheduler <url>', 'the scheduler (default: where the network says)', parseHttpUrl)
    .option('--compute <url>', 'a compute node (default: those that announced themselves)', parseHttpUrl)
    .option('--credit <url>', 'the credit service (default: where the network says)', parseHttpUrl)
    .option('--status <url>', 'the status service (default: where the network says)', parseHttpUrl)
    .addHelpText('after', examples('skerry status', 'skerry status --json'))
    .action(
      bind<StatusOptions>(async (context, options) =>
        (await import('../network/status.ts')).showStatus(context, options),
      ),
    );
}
