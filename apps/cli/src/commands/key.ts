import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { KeyNewOptions } from '../keys/keys.ts';

/** Private keys never leave their files: no command prints one. */
export function addKeyCommands(program: Command, bind: Bind): void {
  const key = program.command('key').description('signing keys on this machine');

  key
    .command('new')
    .description('create a key')
    .option('--name <name>', 'name of the key (default: the current key)')
    .option('--force', 'replace an existing key with this name; the old one is set aside, not deleted')
    .addHelpText('after', examples('skerry key new', 'skerry key new --name work'))
    .action(
      bind<KeyNewOptions>(async (context, options) =>
        (await import('../keys/keys.ts')).newKey(context, options),
      ),
    );

  key
    .command('import')
    .description('import an existing private key')
    .argument('<file>', 'file with the private key in hexadecimal, or - for standard input')
    .option('--name <name>', 'name of the key (default: the current key)')
    .option('--force', 'replace an existing key with this name; the old one is set aside, not deleted')
    .addHelpText(
      'after',
      examples('skerry key import wallet.key', 'skerry key import - --name work < wallet.key'),
    )
    .action(
      bind<KeyNewOptions>(async (context, options, [file]) =>
        (await import('../keys/keys.ts')).importKey(context, file!, options),
      ),
    );

  key
    .command('show')
    .description("show a key's address and where it is stored")
    .addHelpText('after', examples('skerry key show', 'skerry key show --key work --json'))
    .action(bind(async (context) => (await import('../keys/keys.ts')).showKey(context)));

  key
    .command('list')
    .description('list all keys on this machine')
    .addHelpText('after', examples('skerry key list'))
    .action(bind(async (context) => (await import('../keys/keys.ts')).listKeys(context)));
}
