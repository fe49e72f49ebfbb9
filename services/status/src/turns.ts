import type { StatusConfig } from './config.ts';
import type { Service } from './history/store.ts';

/** The part of a round that nodes may take which do not answer. */
const SILENT_PART = 0.5;
/** For how long a node that fell silent is still checked in each round. */
const REMEMBERED_MS = 86_400_000;

/** How many silent nodes a round has time for where each takes as long as it may; once as many as are checked in parallel at least. */
export const silentMax = ({
  concurrency,
  checkIntervalSeconds,
  timeoutMs,
}: Pick<StatusConfig, 'concurrency' | 'checkIntervalSeconds' | 'timeoutMs'>): number =>
  Math.max(concurrency, Math.floor((SILENT_PART * concurrency * checkIntervalSeconds * 1000) / timeoutMs));

/** Whether it answered in the last day. What a clock that was ahead dated later says nothing. */
function answersLately({ history }: Service, nowMs: number): boolean {
  const { lastSuccessMs } = history.totals;
  return lastSuccessMs !== null && lastSuccessMs <= nowMs && nowMs - lastSuccessMs < REMEMBERED_MS;
}

/**
 * Which announced nodes a round checks: all that answer, and of those that do not so many, one after the other. Announcing
 * costs nothing, and thousands of silent nodes would take a quarter of an hour of each round.
 */
export class Turns {
  readonly #max: number;
  /** Ids of the silent ones; whose turn it is comes first. */
  readonly #line = new Set<number>();

  constructor(max: number) {
    this.#max = max;
  }

  choose(services: readonly Service[], nowMs: number): Service[] {
    const silent = new Map(
      services.filter((service) => !answersLately(service, nowMs)).map((service) => [service.id, service]),
    );
    for (const id of this.#line) if (!silent.has(id)) this.#line.delete(id);
    for (const id of silent.keys()) this.#line.add(id);
    const due = [...this.#line].slice(0, this.#max);
    for (const id of due) {
      this.#line.delete(id);
      this.#line.add(id);
    }
    return [...services.filter(({ id }) => !silent.has(id)), ...due.map((id) => silent.get(id)!)];
  }
}
