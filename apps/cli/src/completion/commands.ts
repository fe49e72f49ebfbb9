import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';

const ABOUT = {
  bash: ['completion for bash', 'skerry completion bash > ~/.local/share/bash-completion/completions/skerry'],
  zsh: ['completion for zsh', 'skerry completion zsh > ~/.zfunc/_skerry   # ~/.zfunc is in $fpath'],
  fish: ['completion for fish', 'skerry completion fish > ~/.config/fish/completions/skerry.fish'],
} as const;

/** Scripts with which shells complete this command. */
export function addCompletionCommands(program: Command, bind: Bind): void {
  const completion = program.command('completion').description('completion of commands in a shell');
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const [about, example] = ABOUT[shell];
    completion
      .command(shell)
      .description(`print the script of the ${about}`)
      .addHelpText('after', examples(example))
      .action(
        bind(async ({ output }) => {
          const { listPlaces } = await import('./tree.ts');
          const { renderCompletion } = await import('./scripts.ts');
          const script = renderCompletion(shell, listPlaces(program));
          output.result({ shell, script }, script);
        }),
      );
  }
  completion
    .command('values', { hidden: true })
    .description('list names for a shell: keys, networks or instances')
    .argument('<kind>', 'keys, networks or instances')
    .addHelpText('after', examples('skerry completion values instances'))
    .action(
      bind(async (context, _options, [kind]) => (await import('./values.ts')).showValues(context, kind!)),
    );
}
