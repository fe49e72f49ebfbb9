import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { KeyExportOptions, KeyNewOptions } from '../keys/keys.ts';
import { YES_OPTION } from '../options.ts';

/** Private keys leave their files only by `export`, which asks first; no other command prints one. */
export function addKeyCommands(program: Command, bind: Bind): void {
  const key = program.command('key').description('signing keys on this computer');

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

  addExport(key, bind);

  key
    .command('show')
    .description("show a key's address and where it is stored")
    .addHelpText('after', examples('skerry key show', 'skerry key show --key work --json'))
    .action(bind(async (context) => (await import('../keys/keys.ts')).showKey(context)));

  key
    .command('list')
    .description('list all keys on this computer')
    .addHelpText('after', examples('skerry key list'))
    .action(bind(async (context) => (await import('../keys/keys.ts')).listKeys(context)));
}

function addExport(key: Command, bind: Bind): void {
  key
    .command('export')
    .description('write the private key to a file of your own, for another computer or as a backup')
    .requiredOption('-o, --output <file>', 'new file (mode 0600), or - for standard output')
    .option(...YES_OPTION)
    .addHelpText(
      'after',
      examples(
        'skerry key export -o work.key --key work',
        'skerry key export -o - --yes | ssh HOST skerry key import -',
      ),
    )
    .action(
      bind<KeyExportOptions>(async (context, options) =>
        (await import('../keys/keys.ts')).exportKey(context, options),
      ),
    );
}
