import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { RestoreOptions } from '../instances/machine.ts';

const REFERENCE = 'its name, its id or the beginning of it, or its four-word host name';

/** What an owner asks of the node that runs an instance, beside what messages say. */
export function addMachineCommands(instance: Command, bind: Bind): void {
  addLogs(instance, bind);
  addPower(instance, bind);
  addSnapshots(instance, bind);
  addCopies(instance, bind);
}

function addLogs(instance: Command, bind: Bind): void {
  instance
    .command('logs')
    .description('what it said on its serial console, also while it is off')
    .argument('<instance>', REFERENCE)
    .option('-f, --follow', 'go on with what it says from now on')
    .addHelpText('after', examples('skerry instance logs web', 'skerry instance logs web --follow'))
    .action(
      bind<{ follow?: boolean }>(async (context, options, [reference]) =>
        (await import('../instances/machine.ts')).showLogs(context, reference!, options),
      ),
    );
}

const POWER = {
  reboot: 'shut it down and boot it again, at its node',
  reinstall: 'begin again with a new disk from its image; the old one is kept for some days',
} as const;

function addPower(instance: Command, bind: Bind): void {
  for (const action of ['reboot', 'reinstall'] as const) {
    instance
      .command(action)
      .description(POWER[action])
      .argument('<instance>', REFERENCE)
      .addHelpText('after', examples(`skerry instance ${action} web`))
      .action(
        bind(async (context, _options, [reference]) =>
          (await import('../instances/machine.ts')).actOnMachine(context, reference!, action),
        ),
      );
  }
}

function addSnapshots(instance: Command, bind: Bind): void {
  const snapshot = instance
    .command('snapshot')
    .description('states of its disk, kept inside the disk')
    .addHelpText('after', examples('skerry instance snapshot create web before-upgrade'));
  const ABOUT = {
    list: 'those there are',
    create: 'keep the disk as it is now',
    delete: 'remove one',
  } as const;
  for (const action of ['list', 'create', 'delete'] as const) {
    const command = snapshot.command(action).description(ABOUT[action]).argument('<instance>', REFERENCE);
    if (action !== 'list') command.argument('<name>', 'a letter, then letters, digits, ".", "_" and "-"');
    command
      .addHelpText(
        'after',
        examples(`skerry instance snapshot ${action} web${action === 'list' ? '' : ' before-upgrade'}`),
      )
      .action(
        bind<object, [string, string | undefined]>(async (context, _options, [reference, name]) =>
          (await import('../instances/machine.ts')).workOnSnapshots(context, reference, action, name),
        ),
      );
  }
}

function addCopies(instance: Command, bind: Bind): void {
  instance
    .command('backup')
    .description('copy its disk into a file here; it may go on running, then it is as after a power cut')
    .argument('<instance>', REFERENCE)
    .requiredOption('-o, --output <file>', 'where to write it, a qcow2 disk')
    .addHelpText('after', examples('skerry instance backup web -o web.qcow2'))
    .action(
      bind<{ output: string }>(async (context, options, [reference]) =>
        (await import('../instances/machine.ts')).backUpInstance(context, reference!, options),
      ),
    );
  instance
    .command('restore')
    .description('put its disk back to a snapshot, or put another disk in its place')
    .argument('<instance>', REFERENCE)
    .option('--snapshot <name>', 'one of its snapshots')
    .option('--file <file>', 'a qcow2 or raw disk here, such as a backup')
    .option('--stored <hash>', 'a qcow2 or raw disk that is stored on the network')
    .addHelpText(
      'after',
      examples(
        'skerry instance restore web --snapshot before-upgrade',
        'skerry instance restore web --file web.qcow2',
      ),
    )
    .action(
      bind<RestoreOptions>(async (context, options, [reference]) =>
        (await import('../instances/machine.ts')).restoreInstance(context, reference!, options),
      ),
    );
}
