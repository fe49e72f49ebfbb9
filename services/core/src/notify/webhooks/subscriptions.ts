import type { WebhookFilters } from '@skerry/protocol';
import type { Traits } from './topics/topic.ts';

/** Who wants to be told of what. */
export interface Subscriber {
  readonly webhook: number;
  readonly events: readonly string[];
  readonly filters: WebhookFilters;
}

type Named = 'senders' | 'tags' | 'channels' | 'types';
/** The narrowest first: an event is looked up by the values of the first filter that a subscriber has. */
const NARROWEST: readonly Named[] = ['senders', 'tags', 'channels', 'types'];

function valuesOf(traits: Traits, name: Named): readonly string[] {
  if (name === 'tags') return traits.tags ?? [];
  const value = { senders: traits.sender, channels: traits.channel, types: traits.type }[name];
  return value === undefined ? [] : [value];
}

export function fits(filters: WebhookFilters, traits: Traits): boolean {
  return NARROWEST.every((name) => {
    const wanted = filters[name];
    return wanted === undefined || valuesOf(traits, name).some((value) => wanted.includes(value));
  });
}

export type FindSubscribers = (event: string, traits: Traits) => number[];

/** An index, so that an event costs as much as it has listeners, however many webhooks there are. */
export function indexSubscribers(subscribers: readonly Subscriber[]): FindSubscribers {
  const index = new Map<string, Subscriber[]>();
  const put = (key: string, subscriber: Subscriber) => {
    const list = index.get(key);
    if (list) list.push(subscriber);
    else index.set(key, [subscriber]);
  };
  for (const subscriber of subscribers) {
    const name = NARROWEST.find((one) => subscriber.filters[one] !== undefined);
    for (const event of subscriber.events) {
      if (name === undefined) put(event, subscriber);
      else for (const value of subscriber.filters[name]!) put(`${event}\n${name}\n${value}`, subscriber);
    }
  }
  return (event, traits) => {
    const keys = [
      event,
      ...NARROWEST.flatMap((name) => valuesOf(traits, name).map((value) => `${event}\n${name}\n${value}`)),
    ];
    const found = new Set<number>();
    for (const key of keys) {
      for (const subscriber of index.get(key) ?? [])
        if (fits(subscriber.filters, traits)) found.add(subscriber.webhook);
    }
    return [...found];
  };
}
