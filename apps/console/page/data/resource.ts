import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Failure, failureOf, pauseAfter } from './failure.ts';

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

/** Those that wait until they ask again, by what they ask for. */
const pauses = new Map<string, Set<() => void>>();

/** Has it asked for now: something has just changed it. */
export function askAgain(key: string): void {
  for (const end of pauses.get(key) ?? []) end();
}

function pause(key: string, ms: number, signal: AbortSignal): Promise<void> {
  const own = pauses.get(key) ?? new Set();
  pauses.set(key, own);
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      own.delete(end);
      if (own.size === 0) pauses.delete(key);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    own.add(end);
  });
}

async function keepAsking<T>(
  key: string,
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
    await pause(key, pauseAfter(state.value.failure, everyMs), stop);
    await untilShown(stop);
  }
}

/** Something that views ask for. */
interface Question {
  readonly key: string;
  readonly form: unknown;
  readonly everyMs: number;
  readonly state: Signal<Resource<unknown>>;
  askers: number;
  stop: AbortController;
}

/** What is asked for now. Views that ask the same share the answer, and what it costs the node and the page. */
const questions = new Set<Question>();

function questionOf(key: string, form: unknown, everyMs: number): Question {
  const isSame = (one: Question) => one.key === key && one.form === form && one.everyMs === everyMs;
  const found = [...questions].find(isSame);
  if (found) return found;
  const made = {
    key,
    form,
    everyMs,
    state: signal<Resource<unknown>>(EMPTY),
    askers: 0,
    stop: new AbortController(),
  };
  questions.add(made);
  return made;
}

/** The first who asks begins, and it ends with the last one. @returns how one leaves */
function join(question: Question, load: Load<unknown>): () => void {
  if (question.askers++ === 0) {
    // The last one may have left after this one was drawn.
    questions.add(question);
    question.stop = new AbortController();
    void keepAsking(question.key, load, question.everyMs, question.state, question.stop.signal);
  }
  return () => {
    if (--question.askers > 0) return;
    question.stop.abort();
    questions.delete(question);
  };
}

/**
 * @param key what it is asked for: another key asks anew; undefined: nothing yet
 * @param everyMs Infinity: until it was answered once
 * @param form what it is read as: who asks for the same key in the same form, as often, shares the answer
 */
export function useResource<T>(
  key: string | undefined,
  load: Load<T>,
  everyMs: number,
  form: unknown = load,
): Resource<T> {
  const question = useMemo(() => (key === undefined ? undefined : questionOf(key, form, everyMs)), [key]);
  useEffect(() => question && join(question, load), [question]);
  return (question?.state.value ?? EMPTY) as Resource<T>;
}
