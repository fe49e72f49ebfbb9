import { type Command, Option } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { LossOptions } from '../confirm.ts';
import { parseDurationMs, parseMemoryMib, parsePositive, YES_OPTION } from '../options.ts';
import type { ProgramCreateOptions, ProgramListOptions, ProgramRunOptions } from '../programs/programs.ts';

const actions = () => import('../programs/programs.ts');
const HASH = 'the hash of a program, as "skerry program list" shows it';
const MEMORY_MIB = 128;
const TIMEOUT_MS = 10_000;
/** As much as a page of messages may hold. */
const PAGE_SIZE = 100;

const addPair = (pair: string, before: readonly string[]) => [...before, pair];

export function addProgramCommands(root: Command, bind: Bind): void {
  const program = root.command('program').description('code that runs when called');

  addCreate(program, bind);
  addUse(program, bind);
}

function addCreate(program: Command, bind: Bind): void {
  program
    .command('create')
    .description('publish a program; prints its hash')
    .argument('<file>', 'a script, a module, a .wasm command or a .zip archive')
    .option('--name <name>', 'name of the program (default: the file name)')
    .option('--runtime <runtime>', 'nodejs, python3 or wasm (default: from the file extension)')
    .option('--memory <size>', 'MiB, or with a unit: 256M', parseMemoryMib, MEMORY_MIB)
    .addOption(
      new Option('--timeout <time>', 'time limit of one call')
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
}

/** What is done with a program that was published. */
function addUse(program: Command, bind: Bind): void {
  program
    .command('run')
    .description('call a program; prints its answer')
    .argument('<hash>', HASH)
    .addOption(
      new Option('--var <name=value>', 'a variable, repeatable; values that are JSON are parsed')
        .argParser(addPair)
        .default([], 'none'),
    )
    .addHelpText('after', examples('skerry program run HASH --var name=Ada --var count=3'))
    .action(
      bind<ProgramRunOptions>(async (context, options, [hash]) =>
        (await actions()).runProgram(context, hash!, options),
      ),
    );

  program
    .command('logs')
    .description('show what it printed, by each node that ran it since the node started')
    .argument('<hash>', HASH)
    .option('-f, --follow', 'keep showing new output, of the nodes that have run it')
    .addHelpText('after', examples('skerry program logs HASH', 'skerry program logs HASH --follow'))
    .action(
      bind<{ follow?: boolean }>(async (context, options, [hash]) =>
        (await import('../programs/logs.ts')).showProgramLogs(context, hash!, options),
      ),
    );

  program
    .command('show')
    .description('show what is published about a program')
    .argument('<hash>', HASH)
    .addHelpText('after', examples('skerry program show HASH --json'))
    .action(bind(async (context, _options, [hash]) => (await actions()).showProgram(context, hash!)));

  program
    .command('list')
    .description('list your programs, newest first')
    .option('--address <address>', 'list those of another owner')
    .option('--page <n>', 'page number, from 1 (default: 1)', parsePositive)
    .option('--limit <n>', 'programs per page, up to 100', parsePositive, PAGE_SIZE)
    .addHelpText('after', examples('skerry program list', 'skerry program list --page 2 --json'))
    .action(
      bind<ProgramListOptions>(async (context, options) => (await actions()).listPrograms(context, options)),
    );

  program
    .command('delete')
    .description('delete a program: it can no longer be called')
    .argument('<hash>', HASH)
    .option(...YES_OPTION)
    .addHelpText('after', examples('skerry program delete HASH'))
    .action(
      bind<LossOptions>(async (context, options, [hash]) =>
        (await actions()).deleteProgram(context, options, hash!),
      ),
    );
}
