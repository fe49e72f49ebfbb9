import type { WebhookEvent } from '@skerry/protocol';

/** An event of the log, as the planner reads it. */
export interface LoggedEvent {
  readonly seq: number;
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly timeMs: number;
  /** `instance` only: the data of the event before it of the same instance. */
  readonly before?: Readonly<Record<string, unknown>> | null | undefined;
}

/** What filters look at. undefined: an event of this kind has no such thing, and no filter on it lets it through. */
export interface Traits {
  readonly type?: string | undefined;
  readonly channel?: string | undefined;
  readonly sender?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** One name that webhooks subscribe to, and the kind of event that it is made of. */
export interface Topic {
  readonly name: WebhookEvent;
  readonly kind: string;
  /** undefined: the event is nothing to tell. */
  read(event: LoggedEvent): Traits | undefined;
  /** What is delivered as `data`. The event's own data where left out. */
  tell?(event: LoggedEvent): Readonly<Record<string, unknown>>;
}

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
