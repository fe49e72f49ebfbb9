import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

export function addImageCommands(program: Command, bind: Bind): void {
  const image = program.command('image').description('virtual machine images, built on this computer');

  image
    .command('list')
    .description('list the image names')
    .addHelpText('after', examples('skerry image list'))
    .action(bind(async (context) => (await import('../images/images.ts')).listImages(context)));

  image
    .command('build')
    .description('build an image now instead of on first use; does nothing if it exists')
    .argument('<name>', 'one that "skerry image list" shows')
    .addHelpText('after', examples('skerry image build debian:12'))
    .action(
      bind(async (context, _options, [name]) =>
        (await import('../images/images.ts')).buildImage(context, name!),
      ),
    );
}
