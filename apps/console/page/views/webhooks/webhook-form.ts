import { shellWord } from '@skerry/protocol/text/shell-word';

/** A webhook as it was typed, and as the core node takes it. */

export const WEBHOOK_EVENTS: Readonly<Record<string, string>> = {
  'message.new': 'a message is in force',
  'message.confirmed': 'a chain confirmed a message',
  'instance.status': 'a machine changed',
  'program.executed': 'a program ran',
};

const FILTERS = { types: 'type', channels: 'channel', senders: 'sender', tags: 'tag' } as const;

type Typed = Readonly<Record<string, string>>;

const words = (text: string | undefined) => (text ?? '').split(/[\s,]+/).filter(Boolean);
const eventsOf = (typed: Typed) => Object.keys(WEBHOOK_EVENTS).filter((event) => typed[event] !== undefined);

/** Content of a WEBHOOK message, without its secret. */
export function webhookOf(typed: Typed): Readonly<Record<string, unknown>> {
  const filters = Object.keys(FILTERS).flatMap((name) => {
    const values = words(typed[name]);
    return values.length === 0 ? [] : [[name, values] as const];
  });
  return {
    url: (typed.url ?? '').trim(),
    events: eventsOf(typed),
    ...(filters.length === 0 ? {} : { filters: Object.fromEntries(filters) }),
  };
}

/** The command that registers the same. */
export function webhookCommand(typed: Typed): string {
  const flags = [
    ...eventsOf(typed).map((event) => `--event ${event}`),
    ...Object.entries(FILTERS).flatMap(([name, flag]) =>
      words(typed[name]).map((value) => `--${flag} ${shellWord(value)}`),
    ),
  ];
  return [
    'skerry webhook add',
    shellWord((typed.url ?? '').trim() || 'https://example.org/hook'),
    ...flags,
  ].join(' ');
}
