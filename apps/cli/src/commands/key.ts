import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { KeyNewOptions } from '../keys/actions.ts';

/** Private keys never leave their files: no command prints one. */
export function addKeyCommands(program: Command, bind: Bind): void {
  const key = program.command('key').description('keys to sign with, kept on this machine');

  key
    .command('new')
    .description('make a key')
    .option('--name <name>', 'what to call it (default: the key in use)')
    .option('--force', 'replace a key of this name; the old one is put aside, not deleted')
    .addHelpText('after', examples('skerry key new', 'skerry key new --name work'))
    .action(
      bind<KeyNewOptions>(async (context, options) =>
        (await import('../keys/actions.ts')).newKey(context, options),
      ),
    );

  key
    .command('import')
    .description('keep a key that was made elsewhere')
    .argument('<file>', 'a file with the private key in hexadecimal; - for standard input')
    .option('--name <name>', 'what to call it (default: the key in use)')
    .option('--force', 'replace a key of this name; the old one is put aside, not deleted')
    .addHelpText(
      'after',
      examples('skerry key import wallet.key', 'skerry key import - --name work < wallet.key'),
    )
    .action(
      bind<KeyNewOptions>(async (context, options, [file]) =>
        (await import('../keys/actions.ts')).importKey(context, file!, options),
      ),
    );

  key
    .command('show')
    .description('the address of a key, and where it is kept')
    .addHelpText('after', examples('skerry key show', 'skerry key show --key work --json'))
    .action(bind(async (context) => (await import('../keys/actions.ts')).showKey(context)));

  key
    .command('list')
    .description('every key on this machine')
    .addHelpText('after', examples('skerry key list'))
    .action(bind(async (context) => (await import('../keys/actions.ts')).listKeys(context)));
}
