import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { IndexerAddOptions } from '../indexer/contracts.ts';

export function addIndexerCommands(program: Command, bind: Bind): void {
  const indexer = program.command('indexer').description('events and transactions of indexed chains');

  indexer
    .command('status')
    .description('show indexing progress; for one network, also its contracts and endpoints')
    .argument('[network]', 'one that "skerry indexer status" shows (default: all)')
    .addHelpText('after', examples('skerry indexer status', 'skerry indexer status ethereum --json'))
    .action(
      bind<object, [string | undefined]>(async (context, _options, [network]) =>
        (await import('../indexer/contracts.ts')).showIndexerStatus(context, network),
      ),
    );

  indexer
    .command('add')
    .description('ask the core node to index a contract (sends a signed message) and wait for its answer')
    .argument('<network>', 'one that "skerry indexer status" shows')
    .argument('<contract>', 'its address on that network')
    .requiredOption('--abi <abi>', 'a JSON list of event declarations or a JSON ABI: text, @FILE, or -')
    .option('--start-block <n>', 'first block to index', '0')
    .option('--transactions', 'also index transactions that the address sends and receives')
    .addHelpText(
      'after',
      examples(
        `skerry indexer add ethereum 0x... --abi '["event Transfer(address indexed from, address indexed to, uint256 value)"]'`,
      ),
    )
    .action(
      bind<IndexerAddOptions>(async (context, options, [network, contract]) =>
        (await import('../indexer/contracts.ts')).addToIndexer(context, network!, contract!, options),
      ),
    );

  indexer
    .command('remove')
    .description(
      'ask the core node to stop indexing a contract for you (sends a signed message) and wait for its answer',
    )
    .argument('<network>', 'one that "skerry indexer status" shows')
    .argument('<contract>', 'its address on that network')
    .addHelpText('after', examples('skerry indexer remove ethereum 0x...'))
    .action(
      bind(async (context, _options, [network, contract]) =>
        (await import('../indexer/contracts.ts')).removeFromIndexer(context, network!, contract!),
      ),
    );
}
