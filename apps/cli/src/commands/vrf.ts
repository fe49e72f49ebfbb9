import { type Command, InvalidArgumentError } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parsePositive } from '../options.ts';
import type { VrfGenerateOptions, VrfVerifyOptions } from '../randomness/actions.ts';

function parseWholeOrNegative(text: string): number {
  if (!/^-?[0-9]{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw new InvalidArgumentError('It is a whole number, from -(2^53 - 1) to 2^53 - 1.');
  return Number(text);
}

export function addVrfCommands(program: Command, bind: Bind): void {
  const vrf = program.command('vrf').description('random values that anybody can check');

  vrf
    .command('generate')
    .description('ask a core node for random values; the same request has the same answer')
    .argument('<seed>', 'any text; whoever knows it can check the values')
    .option('--min <n>', 'the lowest value (default 0)', parseWholeOrNegative)
    .option('--max <n>', 'the highest value (default 2^53 - 1)', parseWholeOrNegative)
    .option('--count <n>', 'how many values (default 1)', parsePositive)
    .addHelpText(
      'after',
      examples('skerry vrf generate draw-7 --min 1 --max 6', 'skerry vrf generate draw-7 --json > draw.json'),
    )
    .action(
      bind<VrfGenerateOptions>(async (context, options, [seed]) =>
        (await import('../randomness/actions.ts')).generateRandom(context, seed!, options),
      ),
    );

  vrf
    .command('verify')
    .description('check random values; with --public-key without any network. Exit code 1: they do not hold')
    .requiredOption(
      '--answer <json>',
      'what generate printed with --json: JSON, @FILE, or - for standard input',
    )
    .option(
      '--public-key <hex>',
      'the key that must have answered; else the core node says whether it is known',
    )
    .addHelpText(
      'after',
      examples(
        'skerry vrf verify --answer @draw.json',
        `skerry vrf verify --answer '{"seed":"draw-7","value":4,"proof":"0x..."}' --public-key HEX`,
      ),
    )
    .action(
      bind<VrfVerifyOptions>(async (context, options) =>
        (await import('../randomness/actions.ts')).verifyRandom(context, options),
      ),
    );
}
