import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parseHttpUrl } from '../options.ts';
import type { NetworkAddGlobals, NetworkAddOptions } from './networks.ts';

const actions = () => import('./networks.ts');

/** The networks that a person works with, of which one is the current one. */
export function addNetworksCommands(program: Command, bind: Bind): void {
  const network = program.command('network').description('networks that commands work on');

  const add = network
    .command('add')
    .description('remember a network by a name; its core node says where its services are')
    .argument('<name>', 'a name of your choice')
    .argument('<url>', 'URL of one of its core nodes', parseHttpUrl)
    .option('--scheduler <url>', 'its scheduler, if the core node does not say', parseHttpUrl)
    .option('--credit <url>', 'its credit service, if the core node does not say', parseHttpUrl)
    .option('--status <url>', 'its status service, if the core node does not say', parseHttpUrl)
    .option('--use', 'make it the current network');
  add
    .addHelpText(
      'after',
      examples(
        'skerry network add example https://core.example.org --use',
        'skerry network add work https://core.example.net --gateway https://gateway.example.net --key work',
      ),
    )
    .action(
      bind<NetworkAddOptions>(async (context, options, [name, url]) =>
        (await actions()).addNetwork(context, name!, url!, options, add.optsWithGlobals<NetworkAddGlobals>()),
      ),
    );

  network
    .command('use')
    .description('make a network the one that commands work on')
    .argument('<name>', 'its name, or "local" for the network of "skerry up"')
    .addHelpText('after', examples('skerry network use example', 'skerry network use local'))
    .action(bind(async (context, _options, [name]) => (await actions()).useNetwork(context, name!)));

  network
    .command('list')
    .description('list networks; a star marks the current one')
    .addHelpText('after', examples('skerry network list', 'skerry network list --json'))
    .action(bind(async (context) => (await actions()).listNetworks(context)));

  network
    .command('show')
    .description('show where each service of a network is, and how that is known')
    .argument('[name]', 'its name (default: the network that commands work on)')
    .addHelpText('after', examples('skerry network show', 'skerry network show example --json'))
    .action(
      bind<object, [string | undefined]>(async (context, _options, [name]) =>
        (await actions()).showNetwork(context, name),
      ),
    );

  network
    .command('remove')
    .description('forget a network; keys and instances stay')
    .argument('<name>', 'one that "skerry network list" shows')
    .addHelpText('after', examples('skerry network remove example'))
    .action(bind(async (context, _options, [name]) => (await actions()).removeNetwork(context, name!)));
}
