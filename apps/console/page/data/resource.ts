import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Failure, failureOf } from './failure.ts';

/** Something that is asked for again and again while it is shown. */
export interface Resource<T> {
  /** The last that was answered, also while a later try fails. */
  readonly value: T | undefined;
  /** Why the last try failed; undefined where it did not. */
  readonly failure: Failure | undefined;
  /** When the value came, Unix milliseconds. */
  readonly atMs: number | undefined;
}

type Load<T> = (signal: AbortSignal) => Promise<T>;

const EMPTY = { value: undefined, failure: undefined, atMs: undefined };

/** A hidden page asks nothing, and at once when it is shown again. */
function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

async function keepAsking<T>(
  load: Load<T>,
  everyMs: number,
  state: Signal<Resource<T>>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    try {
      const value = await load(stop);
      if (!stop.aborted) state.value = { value, failure: undefined, atMs: Date.now() };
    } catch (error) {
      if (!stop.aborted) state.value = { ...state.value, failure: failureOf(error) };
    }
    if (everyMs === Number.POSITIVE_INFINITY && !state.value.failure) return;
    await pause(Math.min(everyMs, 30_000), stop);
    await untilShown(stop);
  }
}

/** @param key what it is asked for: another key asks anew @param everyMs Infinity: until it was answered once */
export function useResource<T>(key: string, load: Load<T>, everyMs: number): Resource<T> {
  const state = useMemo(() => signal<Resource<T>>(EMPTY), [key]);
  useEffect(() => {
    const stop = new AbortController();
    void keepAsking(load, everyMs, state, stop.signal);
    return () => stop.abort();
  }, [key]);
  return state.value;
}
