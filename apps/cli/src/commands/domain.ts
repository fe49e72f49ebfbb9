import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addDomainCommands(program: Command, bind: Bind): void {
  const domain = program
    .command('domain')
    .description('host names: four words for every instance, and your own');

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

  addCustomDomains(domain, bind);
}

function addCustomDomains(domain: Command, bind: Bind): void {
  domain
    .command('attach')
    .description('lead a host name of your own to an instance; says which DNS records it wants')
    .argument('<name>', 'such as www.example.org')
    .argument('<instance>', 'its id or name')
    .addHelpText('after', examples('skerry domain attach www.example.org web'))
    .action(
      bind(async (context, _options, [name, reference]) =>
        (await import('../domains/custom.ts')).attachDomain(context, name!, reference!),
      ),
    );

  domain
    .command('detach')
    .description('take a host name of your own back from its instance')
    .argument('<name>')
    .addHelpText('after', examples('skerry domain detach www.example.org'))
    .action(
      bind(async (context, _options, [name]) =>
        (await import('../domains/custom.ts')).detachDomain(context, name!),
      ),
    );

  domain
    .command('list')
    .description('the host names of your own that lead to an instance, and what the DNS lacks')
    .argument('<instance>', 'its id or name')
    .addHelpText('after', examples('skerry domain list web', 'skerry domain list web --json'))
    .action(
      bind(async (context, _options, [reference]) =>
        (await import('../domains/custom.ts')).showDomains(context, reference!),
      ),
    );
}
