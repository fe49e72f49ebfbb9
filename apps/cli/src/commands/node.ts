import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addNodeCommands(program: Command, bind: Bind): void {
  const node = program.command('node').description('core nodes: whether they have what the others have');

  node
    .command('status')
    .description('peers, how far behind, what is waited for, digest of the state')
    .addHelpText(
      'after',
      examples('skerry node status', 'skerry node status --core http://127.0.0.1:4124 --json'),
    )
    .action(bind(async (context) => (await import('../nodes/actions.ts')).showNodeStatus(context)));

  node
    .command('diff')
    .description('messages that one of two core nodes lacks; exit code 1 if they differ')
    .argument('<first>', 'URL of a core node')
    .argument('<second>', 'URL of another one')
    .addHelpText('after', examples('skerry node diff http://127.0.0.1:4024 http://127.0.0.1:4124'))
    .action(
      bind(async (context, _options, [first, second]) =>
        (await import('../nodes/actions.ts')).showNodeDiff(context, first!, second!),
      ),
    );
}
