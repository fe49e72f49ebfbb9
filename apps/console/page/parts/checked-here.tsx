import type { ComponentChildren } from 'preact';
import { useAction } from '../data/action.ts';
import { count } from '../pure/format.ts';
import { Panel } from './basic.tsx';
import { Failed } from './states.tsx';

interface CheckedHereProps<T> {
  readonly title: string;
  /** What this tab does, and with what. */
  readonly about: string;
  /** What the button says, and what it says meanwhile. */
  readonly action: string;
  readonly acting: string;
  /** What is counted meanwhile: "signatures checked". */
  readonly counted: string;
  /** Why it cannot be done. */
  readonly hindrance?: string | undefined;
  /** What the reader chooses first. */
  readonly before?: ComponentChildren;
  readonly check: (onProgress: (checked: number) => void) => Promise<T>;
  readonly children: (result: T) => ComponentChildren;
}

/** Something that this tab checks when its reader asks for that: by a verifier that is loaded then. */
export function CheckedHere<T>(props: CheckedHereProps<T>) {
  const { title, about, action, acting, counted, hindrance, before, check, children } = props;
  const { state, run } = useAction<undefined, T>((_, _signal, onProgress) => check(onProgress));
  const isRunning = state.kind === 'running';
  const meanwhile = () =>
    !isRunning
      ? ''
      : state.progress === null
        ? 'loading the verifier'
        : `${count(state.progress)} ${counted}`;
  return (
    <Panel title={title} wide>
      <p class="prose">{about}</p>
      {before}
      <p class="actions">
        <button
          type="button"
          class="primary"
          disabled={hindrance !== undefined || isRunning}
          onClick={() => run(undefined)}
        >
          {isRunning ? acting : action}
        </button>
        <span class="muted" role="status">
          {hindrance ?? meanwhile()}
        </span>
      </p>
      {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
      {state.kind === 'done' ? children(state.value) : null}
    </Panel>
  );
}
