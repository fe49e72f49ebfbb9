import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How long one that can be told so runs by itself. */
export const WHOLE_SECONDS = 60;

/** How long a soak runs, and the numbers that it draws. */
export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** How many runs, where it is told: then the seconds do not count. */
  readonly seeds?: number | undefined;
  /** Flights: how many inputs, where it is told: then the seconds do not count. */
  readonly inputs?: number | undefined;
  /** Failover: only what has this in its name is broken. */
  readonly only?: string | undefined;
  /** Failover: standbys may lack what was acknowledged. */
  readonly isAsynchronous?: boolean | undefined;
}

/** As they were written on the command line. */
interface Given {
  readonly seconds: string;
  readonly seed?: string | undefined;
  readonly seeds?: string | undefined;
  readonly inputs?: string | undefined;
  readonly only?: string | undefined;
  readonly asynchronous?: boolean | undefined;
}

/** The options, or what is wrong with them. */
export function readOptions(given: Given): SoakOptions | string {
  const { seconds, seed, seeds, inputs, only, asynchronous } = given;
  const wrong = Object.entries({ seed, seeds, inputs }).find(([, text]) => !/^\d+$/.test(text ?? '0'));
  if (wrong) return `--${wrong[0]} takes a whole number, not ${wrong[1]}`;
  if (!(Number(seconds) > 0)) return `--seconds takes a number above 0, not ${seconds}`;
  const numberOf = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  return {
    seconds: Number(seconds),
    seed: numberOf(seed) ?? Date.now() % 2 ** 31,
    seeds: numberOf(seeds),
    inputs: numberOf(inputs),
    only,
    isAsynchronous: asynchronous,
  };
}

/** Whether it is as much as the list says that a soak is: what is shorter, one part, or another scenario, shows less. */
export const isWhole = ({ seconds, seeds, inputs, only, isAsynchronous = false }: SoakOptions): boolean =>
  seconds >= WHOLE_SECONDS && !isAsynchronous && [seeds, inputs, only].every((told) => told === undefined);

/** Where the soaks keep what they build. */
export async function withDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-soak-'));
  try {
    await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
