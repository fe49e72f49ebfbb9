import { type Command, Option } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parseDurationMs, parseMemoryMib } from '../options.ts';
import type { ProgramCreateOptions, ProgramListOptions, ProgramRunOptions } from '../programs/actions.ts';

const actions = () => import('../programs/actions.ts');
const MEMORY_MIB = 128;
const TIMEOUT_MS = 10_000;

const addPair = (pair: string, before: readonly string[]) => [...before, pair];

export function addProgramCommands(root: Command, bind: Bind): void {
  const program = root.command('program').description('code that runs when it is called');

  program
    .command('create')
    .description('publish a program; prints its hash')
    .argument('<file>', 'a script, a module, a .wasm command or a .zip of files')
    .option('--name <name>', 'what you call it (default: the name of the file)')
    .option('--runtime <runtime>', 'nodejs, python3 or wasm (default: by the ending of the file)')
    .option('--memory <size>', 'MiB, or such as 256M', parseMemoryMib, MEMORY_MIB)
    .addOption(
      new Option('--timeout <time>', 'how long one call may take, in seconds')
        .argParser(parseDurationMs)
        .default(TIMEOUT_MS, '10s'),
    )
    .option('--description <text>', 'a note')
    .addHelpText(
      'after',
      examples(
        'skerry program create hello.py',
        'skerry program create site.zip --runtime nodejs --memory 256M',
      ),
    )
    .action(
      bind<ProgramCreateOptions>(async (context, options, [file]) =>
        (await actions()).createProgram(context, file!, options),
      ),
    );

  program
    .command('run')
    .description('call a program; prints what it answers')
    .argument('<hash>')
    .option('--var <name=value>', 'a variable; may be given again. JSON values are read as such', addPair, [])
    .addHelpText('after', examples('skerry program run HASH --var name=Ada --var count=3'))
    .action(
      bind<ProgramRunOptions>(async (context, options, [hash]) =>
        (await actions()).runProgram(context, hash!, options),
      ),
    );

  program
    .command('show')
    .description('what is published of a program')
    .argument('<hash>')
    .addHelpText('after', examples('skerry program show HASH --json'))
    .action(bind(async (context, _options, [hash]) => (await actions()).showProgram(context, hash!)));

  program
    .command('list')
    .description('your programs, newest first')
    .option('--address <address>', 'those of another owner')
    .addHelpText('after', examples('skerry program list', 'skerry program list --json'))
    .action(
      bind<ProgramListOptions>(async (context, options) => (await actions()).listPrograms(context, options)),
    );

  program
    .command('delete')
    .description('take a program back: it runs no more')
    .argument('<hash>')
    .addHelpText('after', examples('skerry program delete HASH'))
    .action(bind(async (context, _options, [hash]) => (await actions()).deleteProgram(context, hash!)));
}
