import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AskFailure, type Failure, failureOf } from '../data/failure.ts';
import { Failed, Loading } from './states.tsx';

interface LazyProps<M> {
  readonly load: () => Promise<M>;
  readonly show: (module: M) => ComponentChildren;
}

/** A view in a file of its own, which is loaded when somebody looks at it: the first load has the views that are looked at first. */
export function Lazy<M>({ load, show }: LazyProps<M>) {
  const [module, setModule] = useState<{ readonly loaded: M }>();
  const [failure, setFailure] = useState<Failure>();
  useEffect(() => {
    load().then(
      (loaded) => setModule({ loaded }),
      () =>
        setFailure(
          failureOf(
            new AskFailure(
              'UPSTREAM_UNAVAILABLE',
              'this part of the console could not be loaded',
              'Reload the page.',
            ),
          ),
        ),
    );
  }, []);
  if (failure) return <Failed failure={failure} />;
  return module ? show(module.loaded) : <Loading lines={5} />;
}
