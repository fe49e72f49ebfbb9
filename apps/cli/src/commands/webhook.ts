import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parseDurationMs, parsePositive, parseTags } from '../options.ts';
import type {
  DeliveriesOptions,
  ReplayOptions,
  ResumeOptions,
  RotateOptions,
  WebhookAddOptions,
} from '../webhooks/actions.ts';

const actions = () => import('../webhooks/actions.ts');

export function addWebhookCommands(program: Command, bind: Bind): void {
  const webhook = program
    .command('webhook')
    .description('signed deliveries of events to an address of yours');

  webhook
    .command('add')
    .description('register a webhook; prints its id, and its secret if that was made here')
    .argument('<url>')
    .option('--event <list>', 'message.new, instance.status, ... comma-separated', parseTags, ['message.new'])
    .option('--type <list>', 'only messages of these types', parseTags)
    .option('--channel <list>', 'only messages of these channels', parseTags)
    .option('--sender <list>', 'only from these senders, or of instances of these owners', parseTags)
    .option('--tag <list>', 'only messages with one of these tags', parseTags)
    .option('--concurrency <n>', 'deliveries at once; 1 keeps their order', parsePositive)
    .option('--secret-file <path>', 'the secret is the text of this file (default: a new one is made)')
    .addHelpText('after', examples('skerry webhook add https://example.org/hook --channel notes'))
    .action(
      bind<WebhookAddOptions>(async (context, options, [url]) =>
        (await actions()).addWebhook(context, options, url!),
      ),
    );

  webhook
    .command('list')
    .description('your webhooks, newest first')
    .addHelpText('after', examples('skerry webhook list --json'))
    .action(bind(async (context) => (await actions()).listWebhooks(context)));

  for (const [name, description] of [
    ['show', 'a webhook, and why it is not active'],
    ['pause', 'deliver nothing until it is resumed'],
    ['test', 'deliver a webhook.test now'],
    ['delete', 'forget a webhook'],
  ] as const) {
    webhook
      .command(name)
      .description(description)
      .argument('<id>')
      .addHelpText('after', examples(`skerry webhook ${name} ID`))
      .action(bind(async (context, _options, [id]) => (await actions()).askWebhook(context, id!, name)));
  }

  webhook
    .command('resume')
    .description('deliver again; what was missed comes too')
    .argument('<id>')
    .option('--skip-missed', 'leave out what happened meanwhile')
    .addHelpText('after', examples('skerry webhook resume ID'))
    .action(
      bind<ResumeOptions>(async (context, options, [id]) =>
        (await actions()).resumeWebhook(context, options, id!),
      ),
    );

  webhook
    .command('rotate')
    .description('sign with another secret; for a time with both')
    .argument('<id>')
    .option('--secret-file <path>', 'the new secret is the text of this file (default: one is made)')
    .option('--overlap <duration>', 'how long the old one signs too, such as 1h', parseDurationMs)
    .addHelpText('after', examples('skerry webhook rotate ID --overlap 24h'))
    .action(
      bind<RotateOptions>(async (context, options, [id]) =>
        (await actions()).rotateWebhook(context, options, id!),
      ),
    );

  webhook
    .command('deliveries')
    .description('what was delivered, what waits, what was given up')
    .argument('<id>')
    .option('--state <state>', 'waiting, delivered or dead')
    .option('--limit <n>', 'how many, up to 100', parsePositive)
    .addHelpText('after', examples('skerry webhook deliveries ID --state dead'))
    .action(
      bind<DeliveriesOptions>(async (context, options, [id]) =>
        (await actions()).listDeliveries(context, options, id!),
      ),
    );

  webhook
    .command('replay')
    .description('deliver one event again, or those of a time')
    .argument('<id>')
    .option('--event <event-id>', 'this one')
    .option('--since <duration>', 'everything of the last 90s, 15m, 1h', parseDurationMs)
    .option('--until <duration>', 'but nothing of the last 90s, 15m, 1h', parseDurationMs)
    .addHelpText(
      'after',
      examples(
        'skerry webhook replay ID --event EVENT',
        'skerry webhook replay ID --since 1h',
        'skerry webhook replay ID --since 2h --until 1h',
      ),
    )
    .action(
      bind<ReplayOptions>(async (context, options, [id]) =>
        (await actions()).replayWebhook(context, options, id!),
      ),
    );
}
