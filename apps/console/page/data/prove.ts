import { useEffect, useState } from 'preact/hooks';
import type { TaskName, Tasks } from '../workers/tasks.ts';
import { type Failure, failureOf } from './failure.ts';
import { verify } from './workers.ts';

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
    const tell = (found: Proof<Tasks[N]['answer']>) => {
      if (!isGone) setProof(found);
    };
    // What was found of something else is no answer any more.
    tell({ kind: 'waiting' });
    if (asked === undefined) return;
    verify(name, asked).then(
      (value) => tell({ kind: 'proven', value }),
      (error: unknown) => tell({ kind: 'failed', failure: failureOf(error) }),
    );
    return () => {
      isGone = true;
    };
  }, [key]);
  return proof;
}
