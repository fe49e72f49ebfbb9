import { useEffect, useRef, useState } from 'preact/hooks';
import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { download } from '../../data/download.ts';
import { type Failure, failureOf } from '../../data/failure.ts';
import { type Identity, identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { useResource } from '../../data/resource.ts';
import { zone } from '../../data/settings.ts';
import { verify } from '../../data/workers.ts';
import { Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Empty, Failed, Loaded } from '../../parts/states.tsx';
import { clock, count } from '../../pure/format.ts';
import { findInLog, logText } from '../../pure/owner/log-text.ts';
import type { LogLine } from '../../workers/machine/logs.ts';

const OFTEN_MS = 3_000;
/** All that is kept may be a megabyte. */
const WHOLE_MS = 30_000;
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

/** The newest lines, or those of all that is kept in which a text stands. */
function Shown({ lines, sought }: { readonly lines: readonly LogLine[]; readonly sought: string }) {
  const [first] = lines;
  if (sought === '' || !first) return <Lines lines={lines} none="Its console has said nothing yet." />;
  const found = findInLog(lines, sought, zone.value);
  return (
    <>
      <p class="muted" role="status" data-found={found.length}>
        {count(found.length)} of {count(lines.length)} lines, which go back to {clock(first.atMs, zone.value)}
      </p>
      <Lines lines={found} none="It stands in no line that is kept." />
    </>
  );
}

interface FollowingProps {
  readonly machine: Instance;
  readonly by: Identity;
  /** The owner did not sign: it is not asked again by itself. */
  readonly onRefused: (failure: Failure) => void;
}

function Following({ machine, by, onRefused }: FollowingProps) {
  const { coreUrl } = useNetwork();
  const { instance_id: instanceId, node_address: nodeAddress } = machine;
  const of = { coreUrl, instanceId, nodeAddress: nodeAddress ?? '' };
  const saving = useAction(async (_: undefined) => {
    const lines = await verify('machineLogs', { ...of, isWhole: true }, { by });
    download(`skerry-${instanceId.slice(0, 12)}.log`, logText(lines));
    return lines.length;
  });
  const { state } = saving;
  const [sought, setSought] = useState('');
  const isWhole = sought !== '';
  const read = useResource(
    `${instanceId} ${nodeAddress} ${by.address} ${isWhole}`,
    async () => {
      try {
        return await verify('machineLogs', { ...of, isWhole }, { by });
      } catch (error) {
        const failure = failureOf(error);
        if (failure.code === 'SIGNATURE_REQUIRED') onRefused(failure);
        throw error;
      }
    },
    isWhole ? WHOLE_MS : OFTEN_MS,
  );
  return (
    <>
      <Form label="Find in it" button="Find" onSend={({ sought: typed = '' }) => setSought(typed.trim())}>
        <Field name="sought" label="find in all that is kept" isWide />
      </Form>
      <Loaded from={read}>{(lines) => <Shown lines={lines} sought={sought} />}</Loaded>
      <div class="actions">
        <button
          type="button"
          class="plain"
          disabled={state.kind === 'running'}
          onClick={() => saving.run(undefined)}
        >
          Save all that is kept
        </button>
        <span class="muted" role="status">
          {state.kind === 'done'
            ? `${count(state.value)} lines were saved.`
            : 'Its node keeps the last megabyte, also while the machine is off.'}
        </span>
      </div>
      {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
    </>
  );
}

/** What a machine says on its console, for its owner. */
export function MachineLogs({ machine }: { readonly machine: Instance }) {
  const [isWanted, setWanted] = useState(false);
  const [refused, setRefused] = useState<Failure>();
  const me = identity.value;
  if (me?.address !== machine.owner.toLowerCase() || machine.node_address === null) return null;
  return (
    <Panel
      title="Its console"
      wide
      aside={<ProofMark kind="said" of="nodeWord" label="its node, to its owner" />}
    >
      {isWanted ? (
        <Following
          machine={machine}
          by={me}
          onRefused={(failure) => {
            setRefused(failure);
            setWanted(false);
          }}
        />
      ) : (
        <div class="actions">
          <button type="button" class="plain" onClick={() => setWanted(true)}>
            Show what it says
          </button>
          <span class="muted">You sign once an hour that this tab may ask its node.</span>
        </div>
      )}
      {refused && !isWanted ? <Failed failure={refused} /> : null}
    </Panel>
  );
}
