import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { MessageForgetOptions, MessageListOptions, MessagePostOptions } from '../messages/actions.ts';
import { parsePositive } from '../options.ts';

export function addMessageCommands(program: Command, bind: Bind): void {
  const message = program.command('message').description('signed messages: everything else is made of them');

  message
    .command('post')
    .description('sign a message and send it; prints its hash')
    .option('--type <type>', 'message type', 'POST')
    .requiredOption('--content <json>', 'the content: JSON, @FILE, or - for standard input')
    .option('--channel <name>', 'where it is filed')
    .addHelpText(
      'after',
      examples(
        `skerry message post --content '{"type":"note","content":{"text":"hello"}}'`,
        'skerry message post --type POST --content @note.json --channel notes',
      ),
    )
    .action(
      bind<MessagePostOptions>(async (context, options) =>
        (await import('../messages/actions.ts')).postMessage(context, options),
      ),
    );

  message
    .command('get')
    .description('one message, as it was signed')
    .argument('<hash>')
    .addHelpText('after', examples('skerry message get HASH', 'skerry message get HASH --json'))
    .action(
      bind(async (context, _options, [hash]) =>
        (await import('../messages/actions.ts')).getMessage(context, hash!),
      ),
    );

  message
    .command('list')
    .description('messages, newest first')
    .option('--address <list>', 'only from these senders, comma-separated')
    .option('--type <list>', 'only of these types')
    .option('--channel <list>', 'only of these channels')
    .option('--page <n>', 'page, from 1', parsePositive)
    .option('--limit <n>', 'messages on a page, up to 100', parsePositive)
    .addHelpText('after', examples('skerry message list --type INSTANCE --limit 5'))
    .action(
      bind<MessageListOptions>(async (context, options) =>
        (await import('../messages/actions.ts')).listMessages(context, options),
      ),
    );

  message
    .command('forget')
    .description('take messages of yours back: they lose their content and their effect')
    .argument('<hash...>')
    .option('--reason <text>', 'a note that stays')
    .addHelpText(
      'after',
      examples('skerry message forget HASH', 'skerry message forget HASH HASH --reason old'),
    )
    .action(
      bind<MessageForgetOptions, [string[]]>(async (context, options, [hashes]) =>
        (await import('../messages/actions.ts')).forgetMessages(context, hashes, options),
      ),
    );
}
