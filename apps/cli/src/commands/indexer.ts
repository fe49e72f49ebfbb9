import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { IndexerAddOptions } from '../indexer/actions.ts';

export function addIndexerCommands(program: Command, bind: Bind): void {
  const indexer = program.command('indexer').description('events and transactions of other chains');

  indexer
    .command('status')
    .description('how far chains are indexed; of one network with its contracts and endpoints')
    .argument('[network]')
    .addHelpText('after', examples('skerry indexer status', 'skerry indexer status ethereum --json'))
    .action(
      bind<object, [string | undefined]>(async (context, _options, [network]) =>
        (await import('../indexer/actions.ts')).showIndexerStatus(context, network),
      ),
    );

  indexer
    .command('add')
    .description('ask the core node to index a contract (a signed message)')
    .argument('<network>')
    .argument('<contract>')
    .requiredOption('--abi <abi>', 'a JSON list of event declarations or a JSON ABI: text, @FILE, or -')
    .option('--start-block <n>', 'the first block that is wanted', '0')
    .option('--transactions', 'keep what the address sends and receives too')
    .addHelpText(
      'after',
      examples(
        `skerry indexer add ethereum 0x... --abi '["event Transfer(address indexed from, address indexed to, uint256 value)"]'`,
      ),
    )
    .action(
      bind<IndexerAddOptions>(async (context, options, [network, contract]) =>
        (await import('../indexer/actions.ts')).addToIndexer(context, network!, contract!, options),
      ),
    );

  indexer
    .command('remove')
    .description('take back that a contract is indexed (a signed message)')
    .argument('<network>')
    .argument('<contract>')
    .addHelpText('after', examples('skerry indexer remove ethereum 0x...'))
    .action(
      bind(async (context, _options, [network, contract]) =>
        (await import('../indexer/actions.ts')).removeFromIndexer(context, network!, contract!),
      ),
    );
}
