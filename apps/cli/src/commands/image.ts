import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addImageCommands(program: Command, bind: Bind): void {
  const image = program.command('image').description('what virtual machines begin as, built on this machine');

  image
    .command('list')
    .description('the names of images')
    .addHelpText('after', examples('skerry image list'))
    .action(bind(async (context) => (await import('../images/actions.ts')).listImages(context)));

  image
    .command('build')
    .description('build an image now instead of on its first use; does nothing if it was built')
    .argument('<name>')
    .addHelpText('after', examples('skerry image build debian:12'))
    .action(
      bind(async (context, _options, [name]) =>
        (await import('../images/actions.ts')).buildImage(context, name!),
      ),
    );
}
