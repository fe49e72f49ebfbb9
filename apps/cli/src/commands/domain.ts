import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addDomainCommands(program: Command, bind: Bind): void {
  const domain = program.command('domain').description('host names of instances, and custom domains');

  domain
    .command('name')
    .description(
      'show the host name of an instance; without a gateway and with a full id, only its four words',
    )
    .argument('<instance>', 'instance id or name')
    .addHelpText('after', examples('skerry domain name web'))
    .action(
      bind(async (context, _options, [reference]) =>
        (await import('../domains/host-names.ts')).nameDomain(context, reference!),
      ),
    );

  domain
    .command('lookup')
    .description('show which instance has a host name, according to the gateway')
    .argument('<words>', 'four words joined by hyphens, with or without the domain')
    .addHelpText('after', examples('skerry domain lookup zoo-table-nose-ill'))
    .action(
      bind(async (context, _options, [words]) =>
        (await import('../domains/host-names.ts')).lookUpDomain(context, words!),
      ),
    );

  domain
    .command('why')
    .description('explain why a host name works or does not, step by step')
    .argument('<name>', 'four words, a full host name, or the name or id of an instance')
    .addHelpText('after', examples('skerry domain why zoo-table-nose-ill', 'skerry domain why web'))
    .action(
      bind(async (context, _options, [name]) =>
        (await import('../domains/host-names.ts')).whyDomain(context, name!),
      ),
    );

  addCustomDomains(domain, bind);
}

function addCustomDomains(domain: Command, bind: Bind): void {
  domain
    .command('attach')
    .description('point a custom domain at an instance; prints the DNS records you need')
    .argument('<name>', 'the domain, for example www.example.org')
    .argument('<instance>', 'instance id or name')
    .addHelpText('after', examples('skerry domain attach www.example.org web'))
    .action(
      bind(async (context, _options, [name, reference]) =>
        (await import('../domains/custom.ts')).attachDomain(context, name!, reference!),
      ),
    );

  domain
    .command('detach')
    .description('detach a custom domain from its instance')
    .argument('<name>', 'the domain, for example www.example.org')
    .addHelpText('after', examples('skerry domain detach www.example.org'))
    .action(
      bind(async (context, _options, [name]) =>
        (await import('../domains/custom.ts')).detachDomain(context, name!),
      ),
    );

  domain
    .command('list')
    .description("list an instance's custom domains and missing DNS records")
    .argument('<instance>', 'instance id or name')
    .addHelpText('after', examples('skerry domain list web', 'skerry domain list web --json'))
    .action(
      bind(async (context, _options, [reference]) =>
        (await import('../domains/custom.ts')).showDomains(context, reference!),
      ),
    );
}
