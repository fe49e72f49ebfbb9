import { type Command, Option } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { LossOptions } from '../confirm.ts';
import type { InstanceUpdateOptions } from '../instances/control.ts';
import type { InstanceCreateOptions } from '../instances/create.ts';
import type { InstanceDeleteOptions } from '../instances/delete.ts';
import type { InstanceListOptions } from '../instances/list.ts';
import type { InstanceSshOptions } from '../instances/ssh.ts';
import type { WaitOptions } from '../instances/wait.ts';
import {
  parseDiskGib,
  parseMemoryMib,
  parsePorts,
  parsePositive,
  parseWaitMs,
  YES_OPTION,
} from '../options.ts';
import { addMachineCommands } from './machine.ts';

const REFERENCE = 'name, id, start of the id, or host name';
const PROXY_PROTOCOL =
  'start TLS connections through the gateway with a PROXY protocol v2 header that names the client';
const ALLOW = 'ports open to everyone: TCP, or UDP as udp:443; or "none"';
const CONNECT_TIMEOUT_MS = 120_000;

const withWait = (command: Command) =>
  command
    .option('--wait', 'wait until it is done, showing progress')
    .option(
      '--wait-timeout <time>',
      'how long to wait in all (default: until nothing has changed for 15m, and at most 6h)',
      parseWaitMs,
    );

export function addInstanceCommands(program: Command, bind: Bind): void {
  const instance = program.command('instance').description('virtual machines');
  addCreate(instance, bind);
  addReading(instance, bind);
  addControl(instance, bind);
  addUpdate(instance, bind);
  addSsh(instance, bind);
  addMachineCommands(instance, bind);
  addDeletion(instance, bind);
}

function addCreate(instance: Command, bind: Bind): void {
  const create = instance
    .command('create')
    .description('create and start a virtual machine')
    .requiredOption('--name <name>', 'a name of your choice')
    .option('--image <image>', 'image to start from', 'debian:12')
    .option('--cpu <n>', 'virtual cores', parsePositive, 1)
    .option('--memory <size>', 'MiB, or with a unit: 512M, 2G', parseMemoryMib, 512)
    .option('--disk <size>', 'GiB, or with a unit: 4G', parseDiskGib, 4)
    .option('--ssh-key <file>', 'your public key (default: the first of ~/.ssh/id_*.pub, or a new one)')
    .addOption(
      new Option('--allow <ports>', ALLOW).argParser(parsePorts).default({ allowedPorts: [22] }, '22'),
    )
    .option('--description <text>', 'a note')
    .option('--proxy-protocol', PROXY_PROTOCOL)
    .option('-y, --yes', 'create it also where no compute node is large enough');
  withWait(create)
    .addHelpText(
      'after',
      examples(
        'skerry instance create --name web --allow 22,80,443 --wait',
        'skerry instance create --name db --image debian:12 --cpu 2 --memory 2G --disk 20G --ssh-key ~/.ssh/work.pub',
      ),
    )
    .action(
      bind<InstanceCreateOptions>(async (context, options) =>
        (await import('../instances/create.ts')).createInstance(context, options),
      ),
    );
}

function addReading(instance: Command, bind: Bind): void {
  instance
    .command('list')
    .description('list your virtual machines, newest first')
    .option('--all', "everybody's")
    .option('--address <address>', 'list those of another owner')
    .option('--status <status>', 'only those with this status: running or stopped')
    .addHelpText('after', examples('skerry instance list', 'skerry instance list --all --status running'))
    .action(
      bind<InstanceListOptions>(async (context, options) =>
        (await import('../instances/list.ts')).listInstances(context, options),
      ),
    );
  instance
    .command('show')
    .description('show all details of a virtual machine')
    .argument('<instance>', REFERENCE)
    .addHelpText('after', examples('skerry instance show web', 'skerry instance show 1f2e3d --json'))
    .action(
      bind(async (context, _options, [reference]) =>
        (await import('../instances/list.ts')).showInstance(context, reference!),
      ),
    );
}

const ACTIONS = {
  start: 'start it if it is not running',
  stop: 'shut it down; it keeps its disk and address',
  restart: 'stop it and start it again',
} as const;

function addControl(instance: Command, bind: Bind): void {
  for (const action of ['start', 'stop', 'restart'] as const) {
    withWait(instance.command(action).description(ACTIONS[action]).argument('<instance>', REFERENCE))
      .addHelpText('after', examples(`skerry instance ${action} web --wait`))
      .action(
        bind<WaitOptions>(async (context, options, [reference]) =>
          (await import('../instances/control.ts')).controlInstance(context, action, reference!, options),
        ),
      );
  }
}

function addUpdate(instance: Command, bind: Bind): void {
  instance
    .command('update')
    .description('change the name, description or open ports')
    .argument('<instance>', REFERENCE)
    .option('--name <name>', 'a new name')
    .option('--description <text>', 'a new note')
    .option('--allow <ports>', ALLOW, parsePorts)
    .option('--proxy-protocol', PROXY_PROTOCOL)
    .option('--no-proxy-protocol', "start TLS connections with the client's own bytes again")
    .addHelpText('after', examples('skerry instance update web --allow 22,80,443,8000,udp:443'))
    .action(
      bind<InstanceUpdateOptions>(async (context, options, [reference]) =>
        (await import('../instances/control.ts')).updateInstance(context, reference!, options),
      ),
    );
}

function addSsh(instance: Command, bind: Bind): void {
  instance
    .command('ssh')
    .description("log in with ssh, or run a command; exits with the command's exit code")
    .argument('<instance>', REFERENCE)
    .argument('[command...]', 'command to run; put -- before it')
    .option('--user <name>', 'user to log in as', 'root')
    .option('-4, --ipv4', 'connect over IPv4, through a port of its node')
    .addOption(
      new Option('--connect-timeout <time>', 'how long to wait for ssh to answer')
        .argParser(parseWaitMs)
        .default(CONNECT_TIMEOUT_MS, '2m'),
    )
    .addHelpText(
      'after',
      examples(
        'skerry instance ssh web',
        'skerry instance ssh web -- uname -a',
        'skerry instance ssh web --ipv4',
      ),
    )
    .action(
      bind<InstanceSshOptions, [string, string[]]>(async (context, options, [reference, command]) =>
        (await import('../instances/ssh.ts')).sshInstance(context, reference, command, options),
      ),
    );
}

function addDeletion(instance: Command, bind: Bind): void {
  instance
    .command('delete')
    .description('delete it permanently, including its address and host name')
    .argument('<instance>', REFERENCE)
    .option(...YES_OPTION)
    .option('--erase', "erase its disk at once, instead of after the node's grace period")
    .option('--reason <text>', 'a note to publish with the deletion')
    .addHelpText('after', examples('skerry instance delete web', 'skerry instance delete web --yes --erase'))
    .action(
      bind<InstanceDeleteOptions>(async (context, options, [reference]) =>
        (await import('../instances/delete.ts')).deleteInstance(context, reference!, options),
      ),
    );
  instance
    .command('erase')
    .description('erase at once what the node kept of a deleted virtual machine')
    .argument('<instance>', 'instance id')
    .option(...YES_OPTION)
    .addHelpText('after', examples('skerry instance erase 1f2e…'))
    .action(
      bind<LossOptions>(async (context, options, [reference]) =>
        (await import('../instances/delete.ts')).eraseInstance(context, reference!, options),
      ),
    );
}
