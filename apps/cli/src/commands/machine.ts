import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { LossOptions } from '../confirm.ts';
import type { RestoreOptions } from '../instances/machine.ts';
import { YES_OPTION } from '../options.ts';

const REFERENCE = 'name, id, start of the id, or host name';

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
    .description('show its serial console output, even while it is off')
    .argument('<instance>', REFERENCE)
    .option('-f, --follow', 'keep showing new output')
    .addHelpText('after', examples('skerry instance logs web', 'skerry instance logs web --follow'))
    .action(
      bind<{ follow?: boolean }>(async (context, options, [reference]) =>
        (await import('../instances/machine.ts')).showLogs(context, reference!, options),
      ),
    );
}

const POWER = {
  reboot: 'shut it down and boot it again on its node',
  reinstall:
    'replace its disk with a new one from its image; the node keeps the old one for some days, for its operator only',
} as const;

function addPower(instance: Command, bind: Bind): void {
  for (const action of ['reboot', 'reinstall'] as const) {
    const command = instance.command(action).description(POWER[action]).argument('<instance>', REFERENCE);
    if (action === 'reinstall') command.option(...YES_OPTION);
    command
      .addHelpText('after', examples(`skerry instance ${action} web`))
      .action(
        bind<LossOptions>(async (context, options, [reference]) =>
          (await import('../instances/machine.ts')).actOnMachine(context, reference!, action, options),
        ),
      );
  }
}

function addSnapshots(instance: Command, bind: Bind): void {
  const snapshot = instance
    .command('snapshot')
    .description('saved states of its disk, kept inside the disk')
    .addHelpText('after', examples('skerry instance snapshot create web before-upgrade'));
  const ABOUT = {
    list: 'list the snapshots',
    create: 'save the current disk',
    delete: 'delete a snapshot',
  } as const;
  for (const action of ['list', 'create', 'delete'] as const) {
    const command = snapshot.command(action).description(ABOUT[action]).argument('<instance>', REFERENCE);
    if (action !== 'list') command.argument('<name>', 'a letter, then letters, digits, ".", "_" and "-"');
    if (action === 'delete') command.option(...YES_OPTION);
    command
      .addHelpText(
        'after',
        examples(`skerry instance snapshot ${action} web${action === 'list' ? '' : ' before-upgrade'}`),
      )
      .action(
        bind<LossOptions, [string, string | undefined]>(async (context, options, [reference, name]) =>
          (await import('../instances/machine.ts')).workOnSnapshots(
            context,
            reference,
            action,
            options,
            name,
          ),
        ),
      );
  }
}

function addCopies(instance: Command, bind: Bind): void {
  instance
    .command('backup')
    .description(
      'download a copy of its disk, which only you can read; if it is running, it is as after a power cut',
    )
    .argument('<instance>', REFERENCE)
    .requiredOption('-o, --output <file>', 'output file, a qcow2 disk')
    .addHelpText('after', examples('skerry instance backup web -o web.qcow2'))
    .action(
      bind<{ output: string }>(async (context, options, [reference]) =>
        (await import('../instances/machine.ts')).backUpInstance(context, reference!, options),
      ),
    );
  instance
    .command('restore')
    .description('restore its disk from a snapshot, or replace it with another disk')
    .argument('<instance>', REFERENCE)
    .option('--snapshot <name>', 'name of a snapshot')
    .option('--file <file>', 'local qcow2 or raw disk, for example a backup')
    .option('--stored <hash>', 'hash of a qcow2 or raw disk stored on the network')
    .option(...YES_OPTION)
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
