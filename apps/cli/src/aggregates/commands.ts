import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parsePositive } from '../options.ts';
import type { AggregateListOptions } from './aggregates.ts';

/** Named objects of an address, merged from messages. */
export function addAggregateCommands(program: Command, bind: Bind): void {
  const aggregate = program
    .command('aggregate')
    .description('named objects of an address, merged from messages');

  aggregate
    .command('get')
    .description('show aggregates of an address: of one key, its content')
    .argument('<address>', 'whose they are')
    .argument('[key...]', 'their keys (default: all)')
    .addHelpText(
      'after',
      `${examples('skerry aggregate get 0x... profile', 'skerry aggregate get 0x... profile settings --json', 'skerry aggregate get 0x...')}

To set fields: skerry message post --type AGGREGATE --content '{"key":"profile","content":{"city":"Oban"}}'`,
    )
    .action(
      bind<object, [string, string[]]>(async (context, _options, [address, keys]) =>
        (await import('./aggregates.ts')).getAggregates(context, address, keys),
      ),
    );

  aggregate
    .command('list')
    .description('list the keys of the aggregates of an address, last changed first')
    .argument('[address]', 'whose they are (default: your own)')
    .option('--all', 'those of everybody')
    .option('--key <list>', 'only these keys, comma-separated')
    .option('--page <n>', 'page number, from 1 (default: 1)', parsePositive)
    .option('--limit <n>', 'aggregates per page, up to 100 (default: 20)', parsePositive)
    .addHelpText(
      'after',
      examples(
        'skerry aggregate list',
        'skerry aggregate list 0x... --json',
        'skerry aggregate list --all --key profile',
      ),
    )
    .action(
      bind<AggregateListOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('./aggregates.ts')).listAggregates(context, address, options),
      ),
    );
}
