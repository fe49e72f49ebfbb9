import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addNodeCommands(program: Command, bind: Bind): void {
  const node = program.command('node').description('core nodes: are they up to date, do they agree?');

  node
    .command('status')
    .description('show peers, missing messages, pending messages and the state digest')
    .addHelpText(
      'after',
      examples('skerry node status', 'skerry node status --core http://127.0.0.1:4124 --json'),
    )
    .action(bind(async (context) => (await import('../nodes/core-node.ts')).showNodeStatus(context)));

  node
    .command('diff')
    .description('compare the messages of two core nodes; exit code 1 if they differ')
    .argument('<first>', 'URL of a core node')
    .argument('<second>', 'URL of another core node')
    .addHelpText('after', examples('skerry node diff http://127.0.0.1:4024 http://127.0.0.1:4124'))
    .action(
      bind(async (context, _options, [first, second]) =>
        (await import('../nodes/core-node.ts')).showNodeDiff(context, first!, second!),
      ),
    );
}
