import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Failure, failureOf } from '../../data/failure.ts';
import { useResource } from '../../data/resource.ts';
import { zone } from '../../data/settings.ts';
import { Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Empty, Failed } from '../../parts/states.tsx';
import { clock } from '../../pure/format.ts';
import type { LogLine } from '../../workers/machine/logs.ts';

/** How often a log that is followed is read. */
export const OFTEN_MS = 3_000;
const CHARS_MAX = 60_000;

const textOf = (lines: readonly LogLine[]) =>
  lines
    .map(({ text }) => text)
    .join('\n')
    .slice(-CHARS_MAX);

/** The newest line stays in sight, unless the reader looks at older ones. */
export function Lines({ lines, none }: { readonly lines: readonly LogLine[]; readonly none: string }) {
  const box = useRef<HTMLPreElement>(null);
  const isHeld = useRef(false);
  const text = textOf(lines);
  useEffect(() => {
    if (box.current && !isHeld.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const last = lines.at(-1);
  if (!last) return <Empty title={none} />;
  return (
    <>
      <pre
        ref={box}
        class="console"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached with the keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isHeld.current = scrollTop + clientHeight < scrollHeight - 8;
        }}
      >
        <Safe text={text} limit={CHARS_MAX} keepsLines />
      </pre>
      <p class="muted">The last line is of {clock(last.atMs, zone.value)}.</p>
    </>
  );
}

/** Told that the owner did not sign: it is not asked again by itself. */
export type OnRefused = (failure: Failure) => void;

/** A log that its owner signs for. */
export const useOwnersLog = <T,>(
  name: string,
  read: () => Promise<T>,
  onRefused: OnRefused,
  everyMs = OFTEN_MS,
) =>
  useResource(
    name,
    async () => {
      try {
        return await read();
      } catch (error) {
        const failure = failureOf(error);
        if (failure.code === 'SIGNATURE_REQUIRED') onRefused(failure);
        throw error;
      }
    },
    everyMs,
  );

interface OwnersLogProps {
  readonly title: string;
  /** What the button says. */
  readonly show: string;
  readonly children: (onRefused: OnRefused) => ComponentChildren;
}

/** A log that a node keeps for its owner, from when the owner wants to see it. */
export function OwnersLog({ title, show, children }: OwnersLogProps) {
  const [isWanted, setWanted] = useState(false);
  const [refused, setRefused] = useState<Failure>();
  return (
    <Panel title={title} wide aside={<ProofMark kind="said" of="nodeWord" label="its node, to its owner" />}>
      {isWanted ? (
        children((failure) => {
          setRefused(failure);
          setWanted(false);
        })
      ) : (
        <div class="actions">
          <button type="button" class="plain" onClick={() => setWanted(true)}>
            {show}
          </button>
          <span class="muted">You sign once an hour that this tab may ask its node.</span>
        </div>
      )}
      {refused && !isWanted ? <Failed failure={refused} /> : null}
    </Panel>
  );
}
