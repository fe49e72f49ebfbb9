import { effect } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { LiveChange } from '../workers/live.ts';
import type { JudgedChange } from '../workers/machine/change.ts';
import { useStream, wantChanges } from './live.ts';
import { useNetwork } from './network.ts';
import { verify } from './workers.ts';

/** A change of a machine that was told while it is shown; without a judgement while it is checked. */
export interface Change extends LiveChange {
  readonly judged: JudgedChange | undefined;
}

const KEPT = 50;

/** What changes a machine from now on, newest first. Each is checked once. */
export function useChanges(id: string): readonly Change[] {
  const stream = useStream();
  const { coreUrl, info } = useNetwork();
  const schedulers = info?.trust.schedulers.value;
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const believed = schedulers?.join(',');
  useEffect(() => {
    if (!schedulers) return;
    const seen = new Set<number>();
    const put = (change: Change) =>
      setChanges((before) =>
        [change, ...before.filter(({ number }) => number !== change.number)]
          .toSorted((one, other) => other.number - one.number)
          .slice(0, KEPT),
      );
    setChanges([]);
    wantChanges(id);
    const stop = effect(() => {
      for (const change of stream.value.changes) {
        if (seen.has(change.number)) continue;
        seen.add(change.number);
        const { data, cause, shared } = change;
        put({ ...change, judged: undefined });
        verify('change', { coreUrl, id, data, cause, shared, schedulers }).then(
          (judged) => put({ ...change, judged }),
          // What could not be checked is left unchecked.
          () => undefined,
        );
      }
    });
    return () => {
      stop();
      wantChanges('');
    };
  }, [id, believed]);
  return changes;
}
