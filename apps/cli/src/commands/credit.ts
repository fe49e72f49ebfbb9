import { type Command, InvalidArgumentError } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type {
  BalanceOptions,
  EstimateOptions,
  GrantOptions,
  HistoryOptions,
  PriceOptions,
  PurchaseOptions,
} from '../credits/actions.ts';
import { parseHttpUrl, parsePositive, parseWhole } from '../options.ts';

const CREDIT_URL = 'the credit service (default: port 4032 beside the core node)';
const KEY_FILE =
  'the key file of the credit service; your own key signs without it, which counts for nothing if nobody trusts it';

/** @param text whole credits, or dollars as in `$5` */
export function parseCredits(text: string): number {
  const [, dollars, credits] = /^(?:\$([0-9]{1,9})|([0-9]{1,15}))$/.exec(text) ?? [];
  const value = dollars === undefined ? Number(credits) : Number(dollars) * 1_000_000;
  if (!(value >= 1))
    throw new InvalidArgumentError('It is a whole number of credits, or of dollars as in $5.');
  return value;
}

/** Beside running the service, `skerry credit` asks what is owned and owed. @param credit the command of the daemon */
export function addCreditCommands(credit: Command, bind: Bind): void {
  addAccountCommands(credit, bind);
  addSaleCommands(credit, bind);
}

function addAccountCommands(credit: Command, bind: Bind): void {
  credit
    .command('balance')
    .description('the credit of an address, and how long it lasts')
    .argument('[address]', 'your own if left out')
    .option('--at <time>', 'as of a time, Unix seconds', parseWhole)
    .addHelpText('after', examples('skerry credit balance', 'skerry credit balance 0x... --at 1790000000'))
    .action(
      bind<BalanceOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/actions.ts')).showBalance(context, address, options),
      ),
    );

  credit
    .command('history')
    .description('what an address bought and used, newest first')
    .argument('[address]', 'your own if left out')
    .option('--kind <kind>', 'purchase or expense')
    .option('--page <n>', 'the page, from 1', parsePositive, 1)
    .option('--limit <n>', 'how many on a page', parsePositive, 20)
    .addHelpText('after', examples('skerry credit history', 'skerry credit history --kind purchase --json'))
    .action(
      bind<HistoryOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/actions.ts')).showHistory(context, address, options),
      ),
    );

  credit
    .command('costs')
    .description('what the instances, programs and files of an address cost')
    .argument('[address]', 'your own if left out')
    .option('--page <n>', 'the page, from 1', parsePositive, 1)
    .option('--limit <n>', 'how many on a page', parsePositive, 20)
    .addHelpText('after', examples('skerry credit costs', 'skerry credit costs 0x... --limit 100'))
    .action(
      bind<HistoryOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/actions.ts')).showCosts(context, address, options),
      ),
    );

  credit
    .command('prices')
    .description('what new instances, programs and files cost; --set publishes other prices')
    .option('--set <json>', 'prices in billionths of a credit per second: text, @FILE, or -')
    .option('--key-file <file>', KEY_FILE)
    .addHelpText(
      'after',
      examples(
        'skerry credit prices',
        `skerry credit prices --set '{"instance":{"compute_unit":4000000000}}' --key-file credit/key`,
      ),
    )
    .action(
      bind<PriceOptions>(async (context, options) =>
        (await import('../credits/actions.ts')).showOrSetPrices(context, options),
      ),
    );

  credit
    .command('grant')
    .description('give credits to an address (a signed message)')
    .argument('<address>')
    .argument('<credits>', 'whole credits, or dollars as in $5', parseCredits)
    .option(
      '--ref <text>',
      'what it is for: of several grants with one ref the first counts; random if left out',
    )
    .option('--key-file <file>', KEY_FILE)
    .addHelpText(
      'after',
      examples(
        'skerry credit grant 0x... 5000000 --key-file ~/credit/key',
        "skerry credit grant 0x... '$5' --ref welcome",
      ),
    )
    .action(
      bind<GrantOptions, [string, number]>(async (context, options, [address, credits]) =>
        (await import('../credits/actions.ts')).grantCredits(context, address, credits, options),
      ),
    );
}

function addSaleCommands(credit: Command, bind: Bind): void {
  credit
    .command('purchases')
    .description('purchases on chains, and how far each is')
    .argument('[address]', "everybody's if left out")
    .option('--page <n>', 'the page, from 1', parsePositive, 1)
    .option('--limit <n>', 'how many on a page', parsePositive, 20)
    .option('--credit <url>', CREDIT_URL, parseHttpUrl)
    .addHelpText('after', examples('skerry credit purchases', 'skerry credit purchases 0x... --json'))
    .action(
      bind<PurchaseOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/actions.ts')).showPurchases(context, address, options),
      ),
    );

  credit
    .command('estimate')
    .description('what an amount of a token buys, and where to send it')
    .argument('<chain>', 'as the credit service names it, such as ethereum')
    .argument('<token>', 'such as USDC')
    .argument('<amount>', 'in whole tokens, such as 9.58; with --credits in credits')
    .option('--credits', 'what so many credits cost instead')
    .option('--credit <url>', CREDIT_URL, parseHttpUrl)
    .addHelpText(
      'after',
      examples(
        'skerry credit estimate ethereum USDC 9.58',
        'skerry credit estimate ethereum USDC 1000000 --credits',
      ),
    )
    .action(
      bind<EstimateOptions, [string, string, string]>(async (context, options, [chain, token, amount]) =>
        (await import('../credits/actions.ts')).showEstimate(context, { chain, token, amount }, options),
      ),
    );
}
