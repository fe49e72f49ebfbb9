import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@skerry/kit/testing/until';
import type { Cores } from './cores.ts';
import { WRITING } from './node.ts';

const LOOK_MS = 500;
const ASK_TIMEOUT_MS = 2_000;

interface Look {
  readonly atMs: number;
  readonly leading: readonly number[];
}

async function leads(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
    return (await answer.text()).includes('skerry_leads{role="write"} 1');
  } catch {
    // Killed or frozen.
    return false;
  }
}

/** Which of the candidates for writing led, and when. */
export class Leads {
  readonly #looks: Look[] = [];

  async watch(cores: Cores, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const answers = await Promise.all(WRITING.map((index) => leads(cores.urlOf(index))));
      const leading = WRITING.filter((_, place) => answers[place]);
      this.#looks.push({ atMs: performance.now(), leading });
      await delay(LOOK_MS);
    }
  }

  /** The one that leads, and fits. */
  find = (fits: (index: number) => boolean = () => true): Promise<number> =>
    until(
      'a candidate for writing leads',
      () => this.#looks.at(-1)?.leading.find(fits),
      (index) => index !== undefined,
    ) as Promise<number>;

  /** For how long nobody led, in milliseconds. */
  longestWithout(fromMs: number, toMs: number): number {
    const led = this.#looks
      .filter(({ atMs, leading }) => leading.length > 0 && atMs >= fromMs && atMs <= toMs)
      .map(({ atMs }) => atMs);
    return Math.max(...[...led, toMs].map((at, place) => at - (led[place - 1] ?? fromMs)));
  }
}
