import { type Command, InvalidArgumentError } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type {
  BalanceOptions,
  EstimateOptions,
  GrantOptions,
  HistoryOptions,
  PriceOptions,
  PurchaseOptions,
} from '../credits/accounts.ts';
import { parseHttpUrl, parseOneOf, parsePositive, parseTimeSeconds } from '../options.ts';

const CREDIT_URL = 'the credit service (default: where the network says)';
const KEY_FILE =
  'key file of the credit service (default: your own key, which counts only if the core nodes trust it)';

/** @param text whole credits, or dollars as in `$5` */
export function parseCredits(text: string): number {
  const [, dollars, credits] = /^(?:\$([0-9]{1,9})|([0-9]{1,15}))$/.exec(text) ?? [];
  const value = dollars === undefined ? Number(credits) : Number(dollars) * 1_000_000;
  if (!(value >= 1))
    throw new InvalidArgumentError('Expected a whole number of credits, or dollars such as $5.');
  return value;
}

/** Beside running the service, `skerry credit` asks what is owned and owed. @param credit the command of the daemon */
export function addCreditCommands(credit: Command, bind: Bind): void {
  addAccountCommands(credit, bind);
  addSpendingCommands(credit, bind);
  addPublisherCommands(credit, bind);
  addSaleCommands(credit, bind);
}

function addAccountCommands(credit: Command, bind: Bind): void {
  credit
    .command('balance')
    .description('show the credit of an address and how long it lasts')
    .argument('[address]', 'the address (default: your own)')
    .option(
      '--at <time>',
      'the balance at this time: 2026-11-30T08:00, 3d ago, or Unix seconds',
      (text: string) => Math.floor(parseTimeSeconds(text)),
    )
    .addHelpText(
      'after',
      examples(
        'skerry credit balance',
        'skerry credit balance 0x... --at 2026-11-30',
        'skerry credit balance --at 3d',
      ),
    )
    .action(
      bind<BalanceOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/accounts.ts')).showBalance(context, address, options),
      ),
    );
}

function addSpendingCommands(credit: Command, bind: Bind): void {
  credit
    .command('history')
    .description('list what an address bought and used, newest first')
    .argument('[address]', 'the address (default: your own)')
    .option('--kind <kind>', 'purchase or expense', parseOneOf(['purchase', 'expense']))
    .option('--ref <text>', 'only what one transaction brought, or one instance, program or file cost')
    .option(
      '--since <time>',
      'only from this time on: 2026-11-30, 2h or 3d ago, or Unix seconds',
      parseTimeSeconds,
    )
    .option('--until <time>', 'only before this time', parseTimeSeconds)
    .option('--page <n>', 'page number, from 1', parsePositive, 1)
    .option('--limit <n>', 'entries per page', parsePositive, 20)
    .addHelpText(
      'after',
      examples(
        'skerry credit history',
        'skerry credit history --kind purchase --json',
        'skerry credit history --ref HASH --since 2026-11-01',
      ),
    )
    .action(
      bind<HistoryOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/accounts.ts')).showHistory(context, address, options),
      ),
    );

  credit
    .command('costs')
    .description('list what the instances, programs and files of an address cost')
    .argument('[address]', 'the address (default: your own)')
    .option('--page <n>', 'page number, from 1', parsePositive, 1)
    .option('--limit <n>', 'entries per page', parsePositive, 20)
    .addHelpText('after', examples('skerry credit costs', 'skerry credit costs 0x... --limit 100'))
    .action(
      bind<HistoryOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/accounts.ts')).showCosts(context, address, options),
      ),
    );
}

function addPublisherCommands(credit: Command, bind: Bind): void {
  credit
    .command('prices')
    .description('show current prices; with --set, publish new ones')
    .option('--set <json>', 'prices in billionths of a credit per second: text, @FILE, or -')
    .option(
      '--reach-back',
      'let the new prices hold for what is dated in the last ten minutes, too, as what is dated back can be',
    )
    .option('--key-file <file>', KEY_FILE)
    .addHelpText(
      'after',
      examples(
        'skerry credit prices',
        `skerry credit prices --set '{"instance":{"compute_unit":4000000000}}' --key-file credit/key`,
        'skerry credit prices --set @prices.json --reach-back',
      ),
    )
    .action(
      bind<PriceOptions>(async (context, options) =>
        (await import('../credits/accounts.ts')).showOrSetPrices(context, options),
      ),
    );

  credit
    .command('grant')
    .description('grant credits to an address (sends a signed message)')
    .argument('<address>', 'who gets them')
    .argument('<credits>', 'whole credits, or dollars such as $5', parseCredits)
    .option(
      '--ref <text>',
      'a name for the grant: of several grants with the same name, only the first counts (default: random)',
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
        (await import('../credits/accounts.ts')).grantCredits(context, address, credits, options),
      ),
    );
}

function addSaleCommands(credit: Command, bind: Bind): void {
  credit
    .command('purchases')
    .description('list purchases on chains and their progress')
    .argument('[address]', 'the address (default: everyone)')
    .option('--page <n>', 'page number, from 1', parsePositive, 1)
    .option('--limit <n>', 'entries per page', parsePositive, 20)
    .option('--credit <url>', CREDIT_URL, parseHttpUrl)
    .addHelpText('after', examples('skerry credit purchases', 'skerry credit purchases 0x... --json'))
    .action(
      bind<PurchaseOptions, [string | undefined]>(async (context, options, [address]) =>
        (await import('../credits/accounts.ts')).showPurchases(context, address, options),
      ),
    );

  credit
    .command('estimate')
    .description('show what an amount of a token buys and where to send it')
    .argument('<chain>', 'the chain, as the credit service names it, for example ethereum')
    .argument('<token>', 'the token, for example USDC')
    .argument('<amount>', 'whole tokens, for example 9.58; with --credits, the number of credits')
    .option('--credits', 'show what this number of credits costs')
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
        (await import('../credits/accounts.ts')).showEstimate(context, { chain, token, amount }, options),
      ),
    );
}
