import { type Command, Option } from 'commander';
import { addAdoptCommand } from '../adopting/commands.ts';
import { type Bind, examples } from '../bind.ts';
import type { DaemonOptions } from '../network/daemon.ts';
import type { DaemonName } from '../network/daemon-names.ts';
import type { RefusedOptions } from '../network/refused.ts';
import { parseHttpUrl, parseOneOf, parsePositive, parseWaitMs } from '../options.ts';
import { SORTS } from '../usage/rates.ts';
import type { UsageOptions } from '../usage/usage.ts';
import { addCreditCommands } from './credit.ts';

/** Daemons that are called by their own name; the status service is `skerry status serve`, for `skerry status` asks. */
const SUMMARIES: Readonly<Record<Exclude<DaemonName, 'status'>, string>> = {
  core: 'run a core node: stores, exchanges and serves messages',
  scheduler: 'run a scheduler: chooses a compute node for each instance',
  compute: 'run a compute node: runs virtual machines and programs',
  gateway: 'run a gateway: routes host names to instances',
  monitor: 'run a monitor: measures every node once an hour',
  credit: 'run a credit service: turns purchases into credits, charges for usage',
  ipfs: 'run an IPFS peer beside a core node: Bitswap and provider records',
};

/** Others know these by an address. */
const SIGNING: ReadonlySet<DaemonName> = new Set(['core', 'scheduler', 'compute', 'monitor', 'credit']);

const SETTINGS_OPTION = [
  '--settings <file>',
  'file of settings, NAME=value a line; the environment comes before it',
] as const;

/** A devnet's word to its daemons (kit's AWAIT_SETTINGS): nothing that a person says. */
const awaitOption = () => new Option('--await-settings').hideHelp();

/** Each daemon by name, in the foreground, until a signal. Settings come from the environment. */
export function addDaemonCommands(program: Command, bind: Bind): void {
  for (const name of Object.keys(SUMMARIES) as (keyof typeof SUMMARIES)[]) {
    const daemon = program
      .command(name)
      .description(SUMMARIES[name])
      .option(...SETTINGS_OPTION)
      .addOption(awaitOption())
      .addHelpText(
        'after',
        examples(
          `skerry ${name}`,
          `SKERRY_${name.toUpperCase()}_DATA_DIR=/srv/${name} skerry ${name} config`,
        ),
      )
      .action(
        bind<DaemonOptions>(async (context, options) =>
          (await import('../network/daemon.ts')).runDaemon(context, name, options),
        ),
      );
    if (name === 'credit') addCreditCommands(daemon, bind);
    if (name === 'credit' || name === 'monitor') addAdoptCommand(daemon, name, bind);
    if (name === 'compute') {
      addPowerOffCommand(daemon, bind);
      addUsageCommand(daemon, bind);
    }
    if (name === 'gateway') addReplaceCommand(daemon, bind);
    if (name === 'gateway') addRefusedCommand(daemon, bind);
    addConfigCommand(daemon, name, bind);
    if (SIGNING.has(name)) addAddressCommand(daemon, name, bind);
  }
  const status = program.commands.find((command) => command.name() === 'status')!;
  status
    .command('serve')
    .description('run the status service: checks every service of the network')
    .option(...SETTINGS_OPTION)
    .addOption(awaitOption())
    .addHelpText(
      'after',
      examples('skerry status serve', 'SKERRY_STATUS_PORT=8031 skerry status serve', 'skerry status config'),
    )
    .action(
      bind<DaemonOptions>(async (context, options) =>
        (await import('../network/daemon.ts')).runDaemon(context, 'status', options),
      ),
    );
  addConfigCommand(status, 'status', bind);
}

/** An option that a daemon and its command both have is the daemon's, wherever it stands (Commander). */
const settingsOf = <Options extends DaemonOptions>(daemon: Command, options: Options): Options => ({
  ...daemon.opts<DaemonOptions>(),
  ...options,
});

function addPowerOffCommand(daemon: Command, bind: Bind): void {
  daemon
    .command('power-off')
    .description(
      "press the power button of every virtual machine here and wait until they are off, before the computer goes down; they start again with the node's next process",
    )
    .option(...SETTINGS_OPTION)
    .addHelpText('after', examples('systemctl stop skerry-compute && skerry compute power-off'))
    .action(
      bind<DaemonOptions>(async (context, options) =>
        (await import('../network/power-off.ts')).powerOff(context, settingsOf(daemon, options)),
      ),
    );
}

const USAGE_LIMIT = 20;

function addUsageCommand(daemon: Command, bind: Bind): void {
  daemon
    .command('usage')
    .description(
      'show what each instance and program here uses: processor, memory, disk and network; to be asked on the server of the node',
    )
    .option(...SETTINGS_OPTION)
    .option('--node <url>', 'the node (default: where its settings have it listen)', parseHttpUrl)
    .addOption(
      new Option('--sort <what>', `the most of this comes first: ${SORTS.join(', ')}`)
        .argParser(parseOneOf(SORTS))
        .default('cpu'),
    )
    .option('--limit <n>', 'guests to show at most', parsePositive, USAGE_LIMIT)
    .option('-w, --watch', 'show it again and again, until Ctrl-C')
    .addOption(
      new Option('--interval <time>', 'time that shares and rates are measured over')
        .argParser(parseWaitMs)
        .default(1_000, '1s'),
    )
    .addHelpText(
      'after',
      examples('skerry compute usage', 'skerry compute usage --sort out --watch --interval 5s'),
    )
    .action(
      bind<UsageOptions>(async (context, options) =>
        (await import('../usage/usage.ts')).showUsage(context, settingsOf(daemon, options)),
      ),
    );
}

function addReplaceCommand(daemon: Command, bind: Bind): void {
  daemon
    .command('replace')
    .description(
      'start a gateway that takes over from the one that runs here, with its connections, and end when the new one serves; it needs the native data plane',
    )
    .option(...SETTINGS_OPTION)
    .addHelpText('after', examples('skerry gateway replace --settings /etc/skerry/gateway.env'))
    .action(
      bind<DaemonOptions>(async (context, options) =>
        (await import('../network/replace.ts')).replaceGateway(context, settingsOf(daemon, options)),
      ),
    );
}

function addRefusedCommand(daemon: Command, bind: Bind): void {
  daemon
    .command('refused')
    .description('list the networks that the gateway here refused most in the last minutes, and why')
    .option('--limit <n>', 'how many networks, up to 1,000', parsePositive, 20)
    .option(...SETTINGS_OPTION)
    .addHelpText('after', examples('skerry gateway refused', 'skerry gateway refused --limit 100 --json'))
    .action(
      bind<RefusedOptions>(async (context, options) =>
        (await import('../network/refused.ts')).showRefused(context, settingsOf(daemon, options)),
      ),
    );
}

function addConfigCommand(daemon: Command, name: DaemonName, bind: Bind): void {
  daemon
    .command('config')
    .description('print the current settings; secrets are hidden')
    .option(...SETTINGS_OPTION)
    .addHelpText('after', examples(`skerry ${name} config`, `skerry ${name} config --json`))
    .action(
      bind<DaemonOptions>(async (context, options) =>
        (await import('../network/show-config.ts')).showConfig(context, name, settingsOf(daemon, options)),
      ),
    );
}

function addAddressCommand(daemon: Command, name: DaemonName, bind: Bind): void {
  daemon
    .command('address')
    .description('print the address that others know it by; makes its key if it has none yet')
    .option(...SETTINGS_OPTION)
    .addHelpText(
      'after',
      examples(`skerry ${name} address`, `skerry ${name} address --settings /etc/skerry/${name}.env`),
    )
    .action(
      bind<DaemonOptions>(async (context, options) =>
        (await import('../nodes/address.ts')).showAddress(context, name, settingsOf(daemon, options)),
      ),
    );
}
