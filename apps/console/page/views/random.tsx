import { shellWord } from '@skerry/protocol/text/shell-word';
import { useEffect } from 'preact/hooks';
import { type Action, useAction } from '../data/action.ts';
import { readDraw } from '../data/answers-of-services.ts';
import { ask } from '../data/ask.ts';
import { AskFailure } from '../data/failure.ts';
import { messageLink, useNetwork } from '../data/network.ts';
import { route } from '../data/place.ts';
import { verify } from '../data/workers.ts';
import { DateTime, Facts, Hash, Panel, ProofMark, Safe } from '../parts/basic.tsx';
import { Command } from '../parts/command.tsx';
import { Field, Form, type Typed } from '../parts/form.tsx';
import { Json } from '../parts/json.tsx';
import { Failed, Loading } from '../parts/states.tsx';
import { type DrawRequest, drawOf } from '../pure/draw.ts';
import { count } from '../pure/format.ts';
import { linkTo } from '../pure/route.ts';
import type { JudgedDraw } from '../workers/random.ts';

const VALUES_SHOWN = 200;
const OWNERS_SHOWN = 5;

interface Judged {
  readonly answer: unknown;
  readonly judged: JudgedDraw;
  /** What was asked for, where it was asked for here. */
  readonly asked: DrawRequest | undefined;
}

const Values = ({ values }: { readonly values: readonly number[] }) => (
  <>
    <ul class="values" aria-label="values">
      {values.slice(0, VALUES_SHOWN).map((value, at) => (
        <li key={at}>{value}</li>
      ))}
    </ul>
    {values.length > VALUES_SHOWN ? (
      <p class="muted">
        The first {VALUES_SHOWN} of {count(values.length)} are shown; all were checked.
      </p>
    ) : null}
  </>
);

function Owners({ owners, isCut, unknown }: JudgedDraw) {
  if (unknown !== null)
    return (
      <>
        <ProofMark kind="said" of="random" /> nobody could be asked whose it is: <Safe text={unknown} />
      </>
    );
  if (owners.length === 0)
    return (
      <>
        <ProofMark kind="said" of="random" /> no core node published it, as far as this one knows
        {isCut ? ', in the announcements that are read here: there are more' : null}
      </>
    );
  return (
    <span class="stack">
      {owners.slice(0, OWNERS_SHOWN).map(({ address, itemHash, time, isKnown }) => (
        <span key={itemHash}>
          <ProofMark kind="proven" of="message" message={itemHash} /> published by <Hash value={address} />{' '}
          <a href={messageLink(itemHash)}>
            at <DateTime ms={time * 1_000} />
          </a>
          {isKnown ? ', a core node that this one knows' : null}
        </span>
      ))}
      {isCut || owners.length > OWNERS_SHOWN ? (
        <span class="muted">
          others published it, too, or there are more announcements than are read here
        </span>
      ) : null}
    </span>
  );
}

const DrawFacts = (judged: JudgedDraw) => {
  const { verdict, seed } = judged;
  return (
    <Facts
      rows={[
        ['seed', <Safe text={seed} limit={300} />],
        ...(verdict.count === undefined
          ? []
          : [
              [
                'asked for',
                <>
                  <ProofMark kind={verdict.valid ? 'proven' : 'said'} of="random" /> {count(verdict.count)}{' '}
                  from {verdict.min} to {verdict.max}
                </>,
              ] as const,
            ]),
        ...(verdict.publicKey === undefined
          ? []
          : [
              [
                'key',
                <>
                  <ProofMark kind={verdict.valid ? 'proven' : 'said'} of="random" />{' '}
                  <Hash value={verdict.publicKey} />
                </>,
              ] as const,
            ]),
        ...(verdict.valid ? [['whose key', <Owners {...judged} />] as const] : []),
        ['suite', verdict.suite ?? '–'],
        [
          'not proven',
          'who chose the seed, and when; that its maker did not try other seeds first; that the key is one you meant',
        ],
      ]}
    />
  );
};

/** Whether an answer is of what was asked for: the proof holds for what the node answered. */
const isAsked = (asked: Judged['asked'], { verdict, seed }: JudgedDraw) =>
  !asked ||
  (seed === asked.seed &&
    (['min', 'max', 'count'] as const).every(
      (name) => asked[name] === undefined || asked[name] === verdict[name],
    ));

function Result({ answer, judged, asked }: Judged) {
  const { verdict } = judged;
  const isGood = verdict.valid && isAsked(asked, judged);
  return (
    <>
      <div class={`verdict ${isGood ? 'good' : 'bad'}`} data-state={isGood ? 'proven' : 'refuted'}>
        <p class="verdict-title">
          <span class="lamp" aria-hidden="true" />
          {isGood ? 'No other values were possible.' : 'These values are not proven.'}
        </p>
        {verdict.valid && isGood ? <Values values={verdict.values} /> : null}
        {verdict.valid ? null : (
          <p>
            <ProofMark kind="wrong" of="random" label={verdict.reason.message} />{' '}
            <code>{verdict.reason.code}</code>
          </p>
        )}
        {verdict.valid && !isGood ? (
          <p>
            <ProofMark
              kind="wrong"
              of="random"
              label="the proof is of another request than the one that was asked"
            />
          </p>
        ) : null}
      </div>
      <DrawFacts {...judged} />
      <details>
        <summary>the answer, to keep and to check elsewhere</summary>
        <Json value={answer} />
        <p class="muted">
          Save it as <code>draw.json</code>; anybody checks it with
        </p>
        <Command text="skerry vrf verify --answer @draw.json" />
      </details>
    </>
  );
}

const Shown = ({ state }: Pick<Action<unknown, Judged>, 'state'>) => (
  <div role="status">
    {state.kind === 'running' ? <Loading /> : null}
    {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
    {state.kind === 'done' ? <Result {...state.value} /> : null}
  </div>
);

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AskFailure(
      'INVALID_PARAMETERS',
      'this is not JSON',
      'Paste the whole answer: an object with seed, values and proof.',
    );
  }
}

function Draw() {
  const { coreUrl } = useNetwork();
  const { query } = route.value;
  const { state, run } = useAction<Record<string, string>, Judged>(async (typed, signal) => {
    const asked = drawOf(typed);
    const answer = await ask(`${coreUrl}/api/v0/vrf/generate`, readDraw, signal, { body: asked });
    return { answer, judged: await verify('random', { coreUrl, claim: answer }), asked };
  });
  const key = JSON.stringify(query);
  useEffect(() => {
    if (query.seed) run(query);
  }, [key]);
  const draw = ({ seed, min, max, count: many }: Typed) => {
    const next = linkTo(['random'], { seed, min, max, count: many });
    // The same draw again: it has the same values, which are asked for again.
    if (location.hash === next) run(query);
    else location.hash = next;
  };
  const { seed = '', min, max, count: many } = query;
  const flags = Object.entries({ min, max, count: many }).map(([name, value]) =>
    value ? ` --${name} ${value}` : '',
  );
  return (
    <Panel title="Draw">
      <p class="prose muted">
        The same seed and range give the same values, always: fix them in public before anybody can know the
        answer.
      </p>
      <Form key={key} label="draw" button="Draw" isBusy={state.kind === 'running'} onSend={draw}>
        <Field
          name="seed"
          label="Seed, any text"
          value={seed}
          placeholder="draw 2031-05-04"
          isRequired
          isWide
          limit={1_024}
        />
        <Field name="min" label="From" value={min ?? '1'} isNumber />
        <Field name="max" label="To" value={max ?? '49'} isNumber />
        <Field name="count" label="How many" value={many ?? '6'} isNumber />
      </Form>
      <Shown state={state} />
      {seed === '' ? null : (
        <details>
          <summary>the same from a shell</summary>
          <Command text={`skerry vrf generate ${shellWord(seed)}${flags.join('')}`} />
        </details>
      )}
    </Panel>
  );
}

function Check() {
  const { coreUrl } = useNetwork();
  const { state, run } = useAction<string, Judged>(async (text) => {
    const answer = parseAnswer(text);
    return { answer, judged: await verify('random', { coreUrl, claim: answer }), asked: undefined };
  });
  return (
    <Panel title="Check">
      <p class="prose muted">
        An answer that somebody shows you. Its proof is checked in this tab; no node is asked whether it is
        true.
      </p>
      <Form
        label="check"
        button="Check"
        isBusy={state.kind === 'running'}
        onSend={({ answer = '' }) => run(answer)}
      >
        <label class="wide-field">
          The answer, as JSON
          <textarea
            name="answer"
            rows={5}
            required
            spellcheck={false}
            placeholder={'{"seed": …, "values": […], "proof": "0x…"}'}
          />
        </label>
      </Form>
      <Shown state={state} />
    </Panel>
  );
}

/** Random values: made by the core node, and checked here. */
export const RandomValues = () => (
  <>
    <h1>Random values</h1>
    <div class="panels">
      <Draw />
      <Check />
    </div>
  </>
);
