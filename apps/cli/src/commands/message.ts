import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { MessageForgetOptions, MessageListOptions, MessagePostOptions } from '../messages/messages.ts';
import { parsePositive, YES_OPTION } from '../options.ts';

export function addMessageCommands(program: Command, bind: Bind): void {
  const message = program
    .command('message')
    .description('signed messages, which every other command is built on');

  addPost(message, bind);
  addReading(message, bind);
  addForget(message, bind);
}

function addPost(message: Command, bind: Bind): void {
  message
    .command('post')
    .description('sign and send a message; prints its hash')
    .option('--type <type>', 'message type', 'POST')
    .requiredOption('--content <json>', 'the content: JSON, @FILE, or - for standard input')
    .option('--channel <name>', 'channel to publish in (default: skerry)')
    .addHelpText(
      'after',
      examples(
        `skerry message post --content '{"type":"note","content":{"text":"hello"}}'`,
        'skerry message post --type POST --content @note.json --channel notes',
      ),
    )
    .action(
      bind<MessagePostOptions>(async (context, options) =>
        (await import('../messages/messages.ts')).postMessage(context, options),
      ),
    );
}

function addReading(message: Command, bind: Bind): void {
  message
    .command('get')
    .description('show one message; fails where it was not signed as the core node tells it')
    .argument('<hash>', "the message's item hash")
    .addHelpText('after', examples('skerry message get HASH', 'skerry message get HASH --json'))
    .action(
      bind(async (context, _options, [hash]) =>
        (await import('../messages/messages.ts')).getMessage(context, hash!),
      ),
    );

  message
    .command('list')
    .description('list messages, newest first')
    .option('--address <list>', 'only these senders, comma-separated')
    .option('--type <list>', 'only these types')
    .option('--channel <list>', 'only these channels')
    .option('--page <n>', 'page number, from 1 (default: 1)', parsePositive)
    .option('--limit <n>', 'messages per page, up to 100 (default: 20)', parsePositive)
    .addHelpText('after', examples('skerry message list --type INSTANCE --limit 5'))
    .action(
      bind<MessageListOptions>(async (context, options) =>
        (await import('../messages/messages.ts')).listMessages(context, options),
      ),
    );
}

function addForget(message: Command, bind: Bind): void {
  message
    .command('forget')
    .description('forget your messages: they lose their content and effect')
    .argument('<hash...>', 'item hashes of messages of yours')
    .option('--reason <text>', 'a note to publish')
    .option(...YES_OPTION)
    .addHelpText(
      'after',
      examples('skerry message forget HASH', 'skerry message forget HASH HASH --reason old'),
    )
    .action(
      bind<MessageForgetOptions, [string[]]>(async (context, options, [hashes]) =>
        (await import('../messages/messages.ts')).forgetMessages(context, hashes, options),
      ),
    );
}
