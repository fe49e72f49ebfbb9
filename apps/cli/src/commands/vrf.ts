import { type Command, InvalidArgumentError } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parsePositive } from '../options.ts';
import type { VrfGenerateOptions, VrfVerifyOptions } from '../randomness/random-values.ts';

function parseWholeOrNegative(text: string): number {
  if (!/^-?[0-9]{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw new InvalidArgumentError('Expected a whole number from -(2^53 - 1) to 2^53 - 1.');
  return Number(text);
}

export function addVrfCommands(program: Command, bind: Bind): void {
  const vrf = program.command('vrf').description('random values that anyone can check');

  vrf
    .command('generate')
    .description('ask a core node for random values; the same request always gives the same answer')
    .argument('<seed>', 'any text; anyone who knows it can check the values')
    .option('--min <n>', 'lowest value (default: 0)', parseWholeOrNegative)
    .option('--max <n>', 'highest value (default: 2^53 - 1)', parseWholeOrNegative)
    .option('--count <n>', 'number of values (default: 1)', parsePositive)
    .addHelpText(
      'after',
      examples('skerry vrf generate draw-7 --min 1 --max 6', 'skerry vrf generate draw-7 --json > draw.json'),
    )
    .action(
      bind<VrfGenerateOptions>(async (context, options, [seed]) =>
        (await import('../randomness/random-values.ts')).generateRandom(context, seed!, options),
      ),
    );

  vrf
    .command('verify')
    .description('check random values, offline with --public-key; exit code 1 if they are wrong')
    .requiredOption('--answer <json>', 'output of generate --json: JSON, @FILE, or - for standard input')
    .option(
      '--public-key <hex>',
      'the expected public key (default: ask the core node whether it knows the key)',
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
        (await import('../randomness/random-values.ts')).verifyRandom(context, options),
      ),
    );
}
