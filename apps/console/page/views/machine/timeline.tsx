import { useEffect } from 'preact/hooks';
import { type Instance, readWholeMessages, type WholeMessage } from '../../data/answers.ts';
import { askTold } from '../../data/asking/told.ts';
import { type Change, useChanges } from '../../data/changes.ts';
import { messageLink, nodeLink, useNetwork } from '../../data/network.ts';
import { type Proof, useProof } from '../../data/prove.ts';
import { instancePath, useCore } from '../../data/questions.ts';
import { askAgain, useResource } from '../../data/resource.ts';
import type { MarkKind } from '../../data/trust/mark-kinds.ts';
import { DateTime, Hash, Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { changeOf, ofMachine, type Step, stepOf, timelineOf } from '../../pure/timeline.ts';
import { isUnchecked } from '../../pure/trust/unchecked.ts';
import type { Judged } from '../../workers/messages.ts';

/** A step, and how sure the page is of it. */
interface Line {
  readonly key: string;
  readonly step: Step;
  readonly mark: MarkKind;
  /** What is wrong with it, or why it is not proven. */
  readonly note?: string | undefined;
}

const StepLine = ({ step, mark, note }: Omit<Line, 'key'>) => (
  <li>
    <span class="when-step muted">
      <DateTime ms={step.atMs} />
    </span>
    <span class="grow stack">
      <span>
        <ProofMark kind={mark} of="machine" message={step.message?.item_hash} why={note} />{' '}
        <b>
          <Safe text={step.what} limit={40} />
        </b>{' '}
        {step.node === null ? null : <Hash value={step.node} href={nodeLink(step.node)} />}
      </span>
      {step.why === null ? null : (
        <span class="muted">
          <Safe text={step.why} limit={300} />
        </span>
      )}
      {note === undefined ? null : (
        <span class={mark === 'wrong' ? 'wrong' : 'muted'}>
          <Safe text={note} limit={300} />
        </span>
      )}
    </span>
    {step.message === null ? null : (
      <span class="stack">
        <Hash value={step.message.item_hash} href={messageLink(step.message.item_hash)} />
        <span class="muted">
          by <Hash value={step.message.sender} />
        </span>
      </span>
    )}
  </li>
);

/** What a list of messages says, each line by its own signature. */
function lineOf(step: Step, proof: Proof<readonly Judged[]>): Line {
  const hash = step.message!.item_hash;
  const line = { key: hash, step };
  if (proof.kind === 'failed') return { ...line, mark: 'said' };
  const judged = proof.kind === 'proven' ? proof.value.find(({ itemHash }) => itemHash === hash) : undefined;
  if (judged === undefined) return { ...line, mark: 'waiting' };
  if (judged.failure)
    return { ...line, mark: isUnchecked(judged.failure) ? 'said' : 'wrong', note: judged.failure.message };
  return step.doubt === null ? { ...line, mark: 'proven' } : { ...line, mark: 'said', note: step.doubt };
}

/** What an event says that came meanwhile, by the signature of the message that it names. */
function liveLineOf({ number, cause, atMs, data, judged }: Change): Line {
  const step = judged?.message ? stepOf(judged.message) : changeOf(data, atMs);
  const note = judged === undefined || judged.kind === 'proven' ? undefined : judged.why;
  return { key: cause ?? String(number), step, mark: judged?.kind ?? 'waiting', note };
}

/** Both, each once: an event stands for its message until the list has that, and where it contradicts it. */
function linesOf(listed: readonly Line[], live: readonly Line[]): Line[] {
  const known = new Map(listed.map((line) => [line.key, line]));
  for (const line of live) if (line.mark === 'wrong' || !known.has(line.key)) known.set(line.key, line);
  return [...known.values()].sort((one, other) => other.step.atMs - one.step.atMs);
}

const CHANGES_MAX = 100;
/** Four questions each time; what happens meanwhile comes by itself. */
const TOLD_MS = 40_000;
const SELDOM_MS = 60_000;
const NONE: readonly WholeMessage[] = [];

/** What was told of it, each signed by who tells it; what happens meanwhile comes by itself. */
export function TimelinePanel({ machine }: { readonly machine: Instance }) {
  const { instance_id: id, owner } = machine;
  const { coreUrl, info } = useNetwork();
  const schedulers = info?.trust.schedulers.value;
  const told = useResource(
    schedulers && `told of ${id} at ${coreUrl} by ${schedulers.join(' ')}`,
    (signal) => askTold({ coreUrl, id, schedulers: schedulers! }, signal),
    TOLD_MS,
    askTold,
  );
  const asked = useCore(`/api/v0/messages.json?hashes=${id}&bodies=shared`, readWholeMessages, SELDOM_MS);
  const changed = useCore(
    `/api/v0/messages.json?owners=${encodeURIComponent(owner)}&msgTypes=INSTANCE_CONTROL,INSTANCE_UPDATE&pagination=${CHANGES_MAX}&bodies=shared`,
    readWholeMessages,
  );
  const changes = useChanges(id);
  const newest = changes[0]?.number;
  useEffect(() => {
    if (newest !== undefined) askAgain(`${coreUrl}${instancePath(id)}`);
  }, [newest]);
  const rows = [
    ...(asked.value?.messages ?? NONE),
    ...ofMachine(changed.value?.messages ?? NONE, id),
    ...(told.value ?? NONE),
  ];
  const proof = useProof('messages', rows.length === 0 ? undefined : { coreUrl, rows });
  const steps = timelineOf(rows, schedulers);
  const lines = linesOf(
    steps.map((step) => lineOf(step, proof)),
    changes.map(liveLineOf),
  );
  return (
    <Panel title="What happened to it" wide aside="each line is a signed message">
      <Loaded from={told} lines={5}>
        {() =>
          lines.length === 0 ? (
            <Empty title="Nothing was told of it yet." />
          ) : (
            <ul class="lines timeline">
              {lines.map(({ key, ...line }) => (
                <StepLine key={key} {...line} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
