import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addDomainCommands(program: Command, bind: Bind): void {
  const domain = program.command('domain').description('four-word host names');

  domain
    .command('name')
    .description('the four words of an instance; of a full id without asking anybody')
    .argument('<instance>', 'its id or name')
    .addHelpText('after', examples('skerry domain name web'))
    .action(
      bind(async (context, _options, [reference]) =>
        (await import('../domains/actions.ts')).nameDomain(context, reference!),
      ),
    );

  domain
    .command('lookup')
    .description('which instance has a host name, as the gateway knows it')
    .argument('<words>', 'four words joined by hyphens, with or without the domain')
    .addHelpText('after', examples('skerry domain lookup zoo-table-nose-ill'))
    .action(
      bind(async (context, _options, [words]) =>
        (await import('../domains/actions.ts')).lookUpDomain(context, words!),
      ),
    );

  domain
    .command('why')
    .description('why a host name answers or does not, from the message to the last connection')
    .argument('<name>', 'four words, a whole host name, or the id of an instance')
    .addHelpText('after', examples('skerry domain why zoo-table-nose-ill'))
    .action(
      bind(async (context, _options, [name]) =>
        (await import('../domains/actions.ts')).whyDomain(context, name!),
      ),
    );
}
