import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { addListOptions } from '../messages/filters.ts';
import type { PostListOptions } from './posts.ts';

/** Posts as they are now: messages of the type POST, each with its latest amend. */
export function addPostCommands(program: Command, bind: Bind): void {
  const post = program.command('post').description('posts, each with its latest amend');

  const list = post
    .command('list')
    .description('list posts, last changed first')
    .option('--address <list>', 'only those of these owners, comma-separated')
    .option('--type <list>', 'only posts whose content says these types')
    .option('--ref <list>', 'only those that refer to these: hashes, or what posts have as "ref"')
    .option('--channel <list>', 'only these channels')
    .option('--tag <list>', 'only those with one of these tags')
    .option('--hash <list>', 'only these posts, by their item hashes');
  addListOptions(list, 'posts')
    .addHelpText(
      'after',
      examples(
        'skerry post list --type note --since 2d',
        'skerry post list --address 0x... --channel notes --json',
      ),
    )
    .action(
      bind<PostListOptions>(async (context, options) =>
        (await import('./posts.ts')).listPosts(context, options),
      ),
    );

  post
    .command('get')
    .description('show one post with its latest amend, and what amended it')
    .argument('<hash>', 'the item hash of the post')
    .addHelpText(
      'after',
      `${examples('skerry post get HASH', 'skerry post get HASH --json')}

"skerry message get HASH" shows the message as its sender signed it, and proves that.`,
    )
    .action(bind(async (context, _options, [hash]) => (await import('./posts.ts')).getPost(context, hash!)));
}
