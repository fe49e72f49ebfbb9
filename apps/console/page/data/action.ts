import { useEffect, useRef, useState } from 'preact/hooks';
import { type Failure, failureOf } from './failure.ts';

/** Something that was done because the reader wanted it. */
export type Done<T> =
  | { readonly kind: 'idle' }
  /** So much of it was done, as far as it tells. */
  | { readonly kind: 'running'; readonly progress: number | null }
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly failure: Failure };

export interface Action<A, T> {
  readonly state: Done<T>;
  /** Begins; what ran before is given up. */
  readonly run: (asked: A) => void;
  /** Gives up what runs, and drops what came of it. */
  readonly forget: () => void;
}

/** Does something when it is asked to, and tells how it went. */
export function useAction<A, T>(
  act: (asked: A, signal: AbortSignal, onProgress: (progress: number) => void) => Promise<T>,
): Action<A, T> {
  const [state, setState] = useState<Done<T>>({ kind: 'idle' });
  const running = useRef<AbortController | null>(null);
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
      running.current?.abort();
    },
    [],
  );
  const run = (asked: A) => {
    // What follows from something that ended after the reader had left.
    if (isGone.current) return;
    running.current?.abort();
    const own = new AbortController();
    running.current = own;
    const tell = (next: Done<T>) => {
      if (!own.signal.aborted) setState(next);
    };
    tell({ kind: 'running', progress: null });
    act(asked, own.signal, (progress) => tell({ kind: 'running', progress })).then(
      (value) => tell({ kind: 'done', value }),
      (error: unknown) => tell({ kind: 'failed', failure: failureOf(error) }),
    );
  };
  const forget = () => {
    running.current?.abort();
    setState({ kind: 'idle' });
  };
  return { state, run, forget };
}
