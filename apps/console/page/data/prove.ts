import { useEffect, useState } from 'preact/hooks';
import { isUnchecked } from '../pure/trust/unchecked.ts';
import type { TaskName, Tasks } from '../workers/tasks.ts';
import { type Failure, failureOf } from './failure.ts';
import { verify } from './workers.ts';

/** After this long, what could not be checked is tried again. */
const AGAIN_MS = 15_000;

/** What the verifier found. */
export type Proof<T> =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'proven'; readonly value: T }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** Has something checked beside the page. @param asked undefined: there is nothing to check yet */
export function useProof<N extends TaskName>(
  name: N,
  asked: Tasks[N]['asked'] | undefined,
): Proof<Tasks[N]['answer']> {
  const [proof, setProof] = useState<Proof<Tasks[N]['answer']>>({ kind: 'waiting' });
  const key = asked === undefined ? '' : JSON.stringify(asked);
  useEffect(() => {
    let isGone = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tell = (found: Proof<Tasks[N]['answer']>) => {
      if (!isGone) setProof(found);
    };
    // What was found of something else is no answer any more.
    tell({ kind: 'waiting' });
    if (asked === undefined) return;
    const again = () => {
      if (!isGone) timer = setTimeout(() => (document.hidden ? again() : check()), AGAIN_MS);
    };
    const check = () => {
      verify(name, asked).then(
        (value) => tell({ kind: 'proven', value }),
        (error: unknown) => {
          const failure = failureOf(error);
          tell({ kind: 'failed', failure });
          if (isUnchecked(failure)) again();
        },
      );
    };
    check();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [key]);
  return proof;
}
