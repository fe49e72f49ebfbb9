import { WEBHOOK_EVENTS } from '@skerry/protocol/forms';
import { type Command, Option } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { LossOptions } from '../confirm.ts';
import { parseDurationMs, parseList, parseOneOf, parsePositive, YES_OPTION } from '../options.ts';
import type {
  DeliveriesOptions,
  ReplayOptions,
  ResumeOptions,
  RotateOptions,
  WebhookAddOptions,
} from '../webhooks/webhooks.ts';

const actions = () => import('../webhooks/webhooks.ts');
const ID = 'a webhook, as "skerry webhook list" shows it';

export function addWebhookCommands(program: Command, bind: Bind): void {
  const webhook = program.command('webhook').description('signed notifications of events to your URL');

  addAdd(webhook, bind);
  addPlainCommands(webhook, bind);
  addChanges(webhook, bind);
  addDeliveries(webhook, bind);
}

function addAdd(webhook: Command, bind: Bind): void {
  webhook
    .command('add')
    .description('register a webhook; prints its id, and its secret if it was generated')
    .argument('<url>', 'where events are sent: https, at a public address')
    .addOption(
      new Option('--event <list>', `${WEBHOOK_EVENTS.join(', ')}; comma-separated`)
        .argParser(parseList)
        .default(['message.new'], 'message.new'),
    )
    .option('--type <list>', 'only messages of these types', parseList)
    .option('--channel <list>', 'only messages in these channels', parseList)
    .option('--sender <list>', 'only messages from these senders, or instances of these owners', parseList)
    .option('--tag <list>', 'only messages with one of these tags', parseList)
    .option('--concurrency <n>', 'parallel deliveries; 1 preserves their order (default: 8)', parsePositive)
    .option('--secret-file <path>', 'file whose text is the secret (default: generate one)')
    .addHelpText('after', examples('skerry webhook add https://example.org/hook --channel notes'))
    .action(
      bind<WebhookAddOptions>(async (context, options, [url]) =>
        (await actions()).addWebhook(context, options, url!),
      ),
    );
}

/** Commands that take an id or nothing. */
function addPlainCommands(webhook: Command, bind: Bind): void {
  webhook
    .command('list')
    .description('list your webhooks, newest first')
    .addHelpText('after', examples('skerry webhook list --json'))
    .action(bind(async (context) => (await actions()).listWebhooks(context)));

  for (const [name, description] of [
    ['show', 'show a webhook, and why it is inactive'],
    ['pause', 'stop deliveries until it is resumed'],
    ['test', 'deliver a webhook.test event now'],
    ['delete', 'delete a webhook'],
  ] as const) {
    const command = webhook.command(name).description(description).argument('<id>', ID);
    if (name === 'delete') command.option(...YES_OPTION);
    command
      .addHelpText('after', examples(`skerry webhook ${name} ID`))
      .action(
        bind<LossOptions>(async (context, options, [id]) =>
          (await actions()).askWebhook(context, options, id!, name),
        ),
      );
  }
}

function addChanges(webhook: Command, bind: Bind): void {
  webhook
    .command('resume')
    .description('resume deliveries, including missed events')
    .argument('<id>', ID)
    .option('--skip-missed', 'skip the events missed while paused')
    .addHelpText('after', examples('skerry webhook resume ID'))
    .action(
      bind<ResumeOptions>(async (context, options, [id]) =>
        (await actions()).resumeWebhook(context, options, id!),
      ),
    );

  webhook
    .command('rotate')
    .description('change the secret; both sign during the overlap')
    .argument('<id>', ID)
    .option('--secret-file <path>', 'file whose text is the new secret (default: generate one)')
    .option('--overlap <duration>', 'how long the old secret keeps signing (default: 24h)', parseDurationMs)
    .addHelpText('after', examples('skerry webhook rotate ID --overlap 24h'))
    .action(
      bind<RotateOptions>(async (context, options, [id]) =>
        (await actions()).rotateWebhook(context, options, id!),
      ),
    );
}

function addDeliveries(webhook: Command, bind: Bind): void {
  webhook
    .command('deliveries')
    .description('list delivered, waiting and dead deliveries')
    .argument('<id>', ID)
    .option(
      '--state <state>',
      'only this state: waiting, delivered or dead',
      parseOneOf(['waiting', 'delivered', 'dead']),
    )
    .option('--limit <n>', 'entries to show, up to 100 (default: 20)', parsePositive)
    .option('--cursor <cursor>', 'go on behind an earlier list, which named it')
    .addHelpText('after', examples('skerry webhook deliveries ID --state dead'))
    .action(
      bind<DeliveriesOptions>(async (context, options, [id]) =>
        (await actions()).listDeliveries(context, options, id!),
      ),
    );

  webhook
    .command('replay')
    .description('deliver one event again, or all events of a period')
    .argument('<id>', ID)
    .option('--event <event-id>', 'the event to deliver')
    .option('--since <duration>', 'start of the period: 90s, 15m or 1h ago', parseDurationMs)
    .option('--until <duration>', 'end of the period: 90s, 15m or 1h ago', parseDurationMs)
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
