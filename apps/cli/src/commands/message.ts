import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { addListOptions } from '../messages/filters.ts';
import type { MessageListOptions } from '../messages/list.ts';
import type { MessageForgetOptions, MessagePostOptions } from '../messages/messages.ts';
import { parseWhole, YES_OPTION } from '../options.ts';

export function addMessageCommands(program: Command, bind: Bind): void {
  const message = program
    .command('message')
    .description('signed messages, which every other command is built on');

  addPost(message, bind);
  addReading(message, bind);
  addList(message, bind);
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
}

function addList(message: Command, bind: Bind): void {
  const list = message
    .command('list')
    .description('list messages, newest first')
    .option('--address <list>', 'only these senders, comma-separated, as in every list')
    .option('--owner <list>', 'only on behalf of these addresses')
    .option('--type <list>', 'only these types, such as POST,STORE')
    .option('--channel <list>', 'only these channels')
    .option('--status <list>', 'pending, rejected, forgotten, ... (default: processed)')
    .option('--content-type <list>', 'only posts whose content says these types')
    .option('--ref <list>', 'only posts and files whose content has one of these as "ref"')
    .option('--tag <list>', 'only those with one of these tags')
    .option('--hash <list>', 'only these, by their item hashes')
    .option('--content-hash <list>', 'only messages that keep these files')
    .option('--content-key <list>', 'only messages of aggregates with these keys')
    .option('--chain <list>', 'only senders of these chains, such as ETH,SOL')
    .option('--payment <list>', 'only what is paid so: hold, superfluid, credit')
    .option('--start-block <height>', 'only those that this block or a later one confirmed first', parseWhole)
    .option('--end-block <height>', 'only those that an earlier block than this confirmed first', parseWhole);
  addListOptions(list, 'messages')
    .addHelpText(
      'after',
      `${examples('skerry message list --type INSTANCE --limit 5', 'skerry message list --address 0x... --since 2026-11-01 --until 2026-12-01 --json', 'skerry message list --status rejected --since 1d')}

"skerry message get HASH" says why one was rejected, and proves who signed it. Of forgotten messages, --since and --until are dates of the end.`,
    )
    .action(
      bind<MessageListOptions>(async (context, options) =>
        (await import('../messages/list.ts')).listMessages(context, options),
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
