import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { VerifyOptions } from '../nodes/verify.ts';
import { parseHttpUrl, parsePositive } from '../options.ts';

/** What takes a minute or so to read. */
const RECOMPUTED_MAX = 200_000;

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
    .argument('<first>', 'URL of a core node', parseHttpUrl)
    .argument('<second>', 'URL of another core node', parseHttpUrl)
    .addHelpText('after', examples('skerry node diff http://127.0.0.1:4024 http://127.0.0.1:4124'))
    .action(
      bind(async (context, _options, [first, second]) =>
        (await import('../nodes/core-node.ts')).showNodeDiff(context, first!, second!),
      ),
    );

  node
    .command('verify')
    .description(
      'fold instances, posts, aggregates, credits, files, measurements and programs anew from signed messages, and compute the digests anew from what the core node lists; exit code 1 if something differs, there is more than --max, or an instance could not be checked',
    )
    .option('--max <count>', 'messages and instances to read at most', parsePositive, RECOMPUTED_MAX)
    .option(
      '--schedulers <list>',
      'addresses whose allocations count, comma-separated (default: those that the core node trusts)',
    )
    .addHelpText('after', examples('skerry node verify', 'skerry node verify --schedulers ADDRESS --json'))
    .action(
      bind<VerifyOptions>(async (context, options) =>
        (await import('../nodes/verify.ts')).verifyNode(context, options),
      ),
    );
}
