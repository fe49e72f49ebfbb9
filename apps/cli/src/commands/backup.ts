import type { Command } from 'commander';
import type { BackupOptions } from '../backup/create.ts';
import type { OpenOptions } from '../backup/inspect.ts';
import type { RestoreOptions } from '../backup/restore.ts';
import { type Bind, examples } from '../bind.ts';

const ROLE = 'core, compute, gateway, scheduler, monitor, credit, status or ipfs';

const addRoleOptions = (command: Command) =>
  command
    .option('--data-dir <directory>', "the node's data directory (default: as its settings say)")
    .option(
      '--settings <file>',
      "file of the node's settings (default: /etc/skerry/ROLE.env, or your configuration directory)",
    );

const addPassphraseOption = (command: Command) =>
  command.option(
    '--passphrase-file <file>',
    'the passphrase that the backup is encrypted to, in the first line',
  );

export function addBackupCommands(program: Command, bind: Bind): void {
  const backup = addRoleOptions(
    program
      .command('backup')
      .description('save all that a node of this server must not lose in one file, also while it runs')
      .argument('<file>', 'the file to write; "-" for standard output')
      .option('--role <role>', `${ROLE} (default: the only one here)`),
  )
    .option('--without-files', 'leave out the files of users')
    .option('--encrypt-to <file>', 'encrypt to the passphrase in the first line of this file')
    .addHelpText(
      'after',
      examples(
        'skerry backup core-2026-11-23.skerry --role core',
        'skerry backup core.skerry --role core --settings /etc/skerry/core.env --encrypt-to passphrase',
        'skerry backup verify core.skerry',
      ),
    )
    .action(
      bind<BackupOptions>(async (context, options, [file]) =>
        (await import('../backup/create.ts')).backup(context, file!, options),
      ),
    );
  addPassphraseOption(
    backup.command('verify').description('read a backup and compare every SHA-256; restores nothing'),
  )
    .argument('<file>', '"-" for standard input')
    .addHelpText('after', examples('skerry backup verify core.skerry'))
    .action(
      bind<OpenOptions>(async (context, options, [file]) =>
        (await import('../backup/inspect.ts')).verify(context, file!, options),
      ),
    );
  addPassphraseOption(backup.command('show').description('what a backup is of, and what is not in it'))
    .argument('<file>', '"-" for standard input')
    .addHelpText('after', examples('skerry backup show core.skerry'))
    .action(
      bind<OpenOptions>(async (context, options, [file]) =>
        (await import('../backup/inspect.ts')).show(context, file!, options),
      ),
    );
  addRestoreCommand(program, bind);
}

function addRestoreCommand(program: Command, bind: Bind): void {
  addPassphraseOption(
    addRoleOptions(
      program
        .command('restore')
        .description('restore a node from its backup, to an empty data directory')
        .argument('<file>', '"-" for standard input')
        .option('--role <role>', `refuse a backup of another role (${ROLE})`),
    ),
  )
    .option('--force', 'put what is in the data directory aside')
    .addHelpText(
      'after',
      examples(
        'skerry restore core.skerry',
        'skerry restore core.skerry --data-dir /srv/core',
        'ssh backup.example.org cat core.skerry | skerry restore -',
      ),
    )
    .action(
      bind<RestoreOptions>(async (context, options, [file]) =>
        (await import('../backup/restore.ts')).restore(context, file!, options),
      ),
    );
}
