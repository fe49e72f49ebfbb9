import { useState } from 'preact/hooks';
import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import { type Message, readMessage } from '../../data/answers.ts';
import { identity } from '../../data/identity.ts';
import { messageLink, useNetwork } from '../../data/network.ts';
import { useCore } from '../../data/questions.ts';
import { type Run, RunFailure, runProgram } from '../../data/run.ts';
import { Badge, Facts, Hash, Panel, Safe, Time } from '../../parts/basic.tsx';
import { Command } from '../../parts/command.tsx';
import { Json } from '../../parts/json.tsx';
import { Empty, Failed, Loaded } from '../../parts/states.tsx';
import { EXAMPLES, readVariables, showAnswer } from '../../pure/owner/program-form.ts';
import { fields, maybe, number, text } from '../../pure/read.ts';
import { linkTo } from '../../pure/route.ts';
import { ProgramLogs } from './program-logs.tsx';

const readProgram = fields({
  name: maybe(text),
  runtime: maybe(text),
  memory: maybe(number),
  timeout: maybe(number),
  code: maybe(text),
});

/** Runs that are remembered. */
const RUNS_MAX = 50;

const milliseconds = (ms: number) => (ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`);

const Answer = ({ run }: { readonly run: Run }) => (
  <div data-run={run.start ?? 'unknown'}>
    <p class="foreseen">
      <Badge tone={run.status < 400 ? 'good' : 'bad'}>status {run.status}</Badge>
      <span class="muted">
        <Safe text={run.type} limit={60} />, {run.bytes} bytes, {milliseconds(run.elapsedMs)}
        {run.start === null ? '' : `, ${run.start}`}
      </span>
    </p>
    {run.text === undefined ? (
      <p class="muted">The answer is no text.</p>
    ) : (
      <Json value={run.text === '' ? 'nothing' : showAnswer(run.text)} />
    )}
  </div>
);

interface Tried {
  readonly atMs: number;
  readonly run: Run | undefined;
  readonly failure: RunFailure | undefined;
}

/** How long each kind of start takes: the median of what this tab saw. */
function Timing({ tried }: { readonly tried: readonly Tried[] }) {
  const runs = tried.flatMap(({ run }) => (run ? [run] : []));
  const starts = [...new Set(runs.map(({ start }) => start ?? 'unknown'))];
  if (starts.length === 0) return null;
  const medianOf = (start: string) => {
    const times = runs
      .filter((one) => (one.start ?? 'unknown') === start)
      .map(({ elapsedMs }) => elapsedMs)
      .sort((one, other) => one - other);
    return `${milliseconds(times[Math.floor(times.length / 2)]!)}, of ${times.length}`;
  };
  return (
    <Panel title="How long it took" aside="median, as this tab saw it">
      <Facts rows={starts.map((start) => [start, medianOf(start)] as const)} />
      <p class="muted">
        Cold: a sandbox was made for it. Spare: one was ready. Warm: it ran before and is still in memory.
      </p>
    </Panel>
  );
}

const Last = ({ tried }: { readonly tried: Tried }) =>
  tried.run ? (
    <Answer run={tried.run} />
  ) : tried.failure ? (
    <>
      <Failed failure={tried.failure} />
      {tried.failure.traceback === undefined ? null : <Json value={tried.failure.traceback} />}
    </>
  ) : null;

function RunPanel({ hash, first, onTried }: RunProps) {
  const { coreUrl } = useNetwork();
  const [lines, setLines] = useState(first);
  const [fault, setFault] = useState<string>();
  const [last, setLast] = useState<Tried>();
  const running = useAction(async (variables: Readonly<Record<string, unknown>>, signal) => {
    const outcome = await runProgram(coreUrl, hash, variables, signal).then(
      (run) => ({ run, failure: undefined }),
      (error: unknown) => {
        if (error instanceof RunFailure) return { run: undefined, failure: error };
        throw error;
      },
    );
    const tried = { atMs: Date.now(), ...outcome };
    setLast(tried);
    onTried(tried);
  });
  const send = () => {
    const read = readVariables(lines);
    setFault('fault' in read ? read.fault : undefined);
    if ('fault' in read) running.forget();
    else running.run(read.variables);
  };
  return (
    <Panel title="Run it" aside="on a node that the core node chooses">
      <form
        class="fields"
        aria-label="run"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <label class="wide-field">
          Variables, one name=value in a line
          <textarea
            name="variables"
            rows={3}
            spellcheck={false}
            value={lines}
            onInput={({ currentTarget }) => setLines(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={running.state.kind === 'running'}>
          {running.state.kind === 'running' ? 'Running' : 'Run'}
        </button>
      </form>
      {fault === undefined ? null : (
        <p class="wrong" role="alert">
          {fault}
        </p>
      )}
      {running.state.kind === 'failed' ? <Failed failure={running.state.failure} /> : null}
      <div role="status">{last ? <Last tried={last} /> : null}</div>
    </Panel>
  );
}

interface RunProps {
  readonly hash: string;
  readonly first: string;
  readonly onTried: (tried: Tried) => void;
}

const Log = ({ tried }: { readonly tried: readonly Tried[] }) => (
  <Panel title="Runs of this tab">
    {tried.length === 0 ? (
      <Empty title="It was not run here yet." />
    ) : (
      <ul class="lines">
        {tried.map(({ atMs, run, failure }) => (
          <li key={atMs}>
            <Time ms={atMs} />
            <span class="grow">
              {run ? (
                <>
                  <Badge tone="good">{run.start ?? 'ran'}</Badge> status {run.status}
                </>
              ) : (
                <>
                  <Badge tone="bad">{failure?.code}</Badge> <Safe text={failure?.message ?? ''} limit={120} />
                </>
              )}
            </span>
            <span class="number">{run ? milliseconds(run.elapsedMs) : ''}</span>
          </li>
        ))}
      </ul>
    )}
  </Panel>
);

function About({ message }: { readonly message: Message }) {
  const { name, runtime, memory, timeout, code } = readProgram(message.content ?? {}, 'the program');
  const doing = useAction(() => act({ kind: 'forget', hashes: [message.item_hash] }));
  const isMine = identity.value?.address === message.sender.toLowerCase();
  return (
    <Panel title="What it is" aside={message.status}>
      <Facts
        rows={[
          ['name', <Safe key="name" text={name ?? 'none'} limit={80} />],
          ['runtime', <Safe key="runtime" text={runtime ?? 'as its message says'} limit={60} />],
          ['at most', `${memory ?? '?'} MiB of memory, ${timeout ?? '?'} seconds a call`],
          ['published by', <Hash key="sender" value={message.sender} />],
          ['message', <Hash key="hash" value={message.item_hash} href={messageLink(message.item_hash)} />],
        ]}
      />
      {code === null ? null : (
        <details>
          <summary>Code</summary>
          <Json value={code} />
        </details>
      )}
      <Command text={`skerry program run ${message.item_hash}`} />
      {isMine && message.status === 'processed' ? (
        <div class="actions">
          <button
            type="button"
            class="plain danger"
            disabled={doing.state.kind === 'running'}
            onClick={() => doing.run(undefined)}
          >
            Delete it
          </button>
          {doing.state.kind === 'failed' ? <Failed failure={doing.state.failure} /> : null}
        </div>
      ) : null}
    </Panel>
  );
}

const exampleOf = (code: unknown) => EXAMPLES.find((one) => one.code === code)?.variables ?? '';

/** One program: run it, and see what it answers, how fast, and why it failed. */
export function ProgramPage({ hash }: { readonly hash: string }) {
  const asked = useCore(`/api/v0/messages/${encodeURIComponent(hash)}`, readMessage);
  const [tried, setTried] = useState<readonly Tried[]>([]);
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['programs'])}>Programs</a>
      </p>
      <h1>Program</h1>
      <Loaded from={asked} lines={5}>
        {(message) => (
          <div class="panels">
            <RunPanel
              hash={message.item_hash}
              first={exampleOf(readProgram(message.content ?? {}, 'the program').code)}
              onTried={(one) => setTried((before) => [one, ...before].slice(0, RUNS_MAX))}
            />
            <About message={message} />
            <ProgramLogs message={message} />
            <Log tried={tried} />
            <Timing tried={tried} />
          </div>
        )}
      </Loaded>
    </>
  );
}
