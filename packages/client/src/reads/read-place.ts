import type { Operation } from '@skerry/protocol/api/operation';

/** In an answer: the number of the last event when it was written. In a request: the answer must know of all events up to this one. */
const LAST_EVENT_HEADER = 'x-last-event';
const AFTER_EVENT_HEADER = 'x-after-event';
const NUMBER = /^[0-9]{1,15}$/;

/**
 * How far whoever answers a client must be, for it to find what it has written and what it has heard of (docs/roles.md). Nothing is
 * asked for until a node tells a number, and the primary answers.
 */
export class ReadPlace {
  #event: number | undefined;

  /** What an operation is asked with beside what else it takes. */
  headersOf({ method }: Pick<Operation, 'method'>): Readonly<Record<string, string>> {
    if (method !== 'GET' || this.#event === undefined) return {};
    return { [AFTER_EVENT_HEADER]: String(this.#event) };
  }

  /** @param headers of the answer; left out where none came: what was sent may be stored all the same, which only the primary knows */
  noteAnswer({ method }: Pick<Operation, 'method'>, headers?: Pick<Headers, 'get'>): void {
    if (method === 'GET') return;
    const told = headers?.get(LAST_EVENT_HEADER) ?? '';
    this.#event = NUMBER.test(told) ? Math.max(this.#event ?? 0, Number(told)) : undefined;
  }

  /** @param cursor of an event that the client was told of */
  noteEvent(cursor: string): void {
    if (this.#event !== undefined && NUMBER.test(cursor)) this.#event = Math.max(this.#event, Number(cursor));
  }
}
