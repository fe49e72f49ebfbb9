import { useState } from 'preact/hooks';
import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import { readWholeMessages, type WholeMessage } from '../../data/answers.ts';
import { identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { useProof } from '../../data/prove.ts';
import { useCore } from '../../data/questions.ts';
import { Badge, Hash, Panel, Safe, Time } from '../../parts/basic.tsx';
import { Price } from '../../parts/price.tsx';
import { Empty, Failed, Loaded } from '../../parts/states.tsx';
import { type Column, SortTable } from '../../parts/table.tsx';
import { EXAMPLES, type ProgramForm, RUNTIMES, readProgramForm } from '../../pure/owner/program-form.ts';
import { fields, maybe, text } from '../../pure/read.ts';
import { linkTo } from '../../pure/route.ts';
import { useDraft } from './draft.ts';
import { NeedKey } from './need-key.tsx';

const readProgram = fields({ name: maybe(text), runtime: maybe(text) });

interface Row {
  readonly message: WholeMessage;
  readonly name: string;
  readonly runtime: string;
}

/** A program of the network form has neither at the same place. */
function rowOf(message: WholeMessage): Row {
  try {
    const { name, runtime } = readProgram(message.content, 'the program');
    return { message, name: name ?? 'without a name', runtime: runtime ?? 'as its message says' };
  } catch {
    return { message, name: 'a program of the network form', runtime: 'as its message says' };
  }
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: 'name',
    title: 'Program',
    sort: ({ name }) => name,
    cell: ({ name, message }) => (
      <a href={linkTo(['programs', message.item_hash])}>
        <Safe text={name} limit={60} />
      </a>
    ),
  },
  {
    name: 'runtime',
    title: 'Runtime',
    sort: ({ runtime }) => runtime,
    cell: ({ runtime }) => (
      <Badge tone="plain">
        <Safe text={runtime} limit={30} />
      </Badge>
    ),
  },
  {
    name: 'owner',
    title: 'Published by',
    sort: ({ message }) => message.sender,
    cell: ({ message }) => <Hash value={message.sender} />,
  },
  {
    name: 'time',
    title: 'Published',
    sort: ({ message }) => -message.time,
    cell: ({ message }) => <Time ms={message.time * 1_000} />,
  },
];

const LISTED = 50;

function Published() {
  const listed = useCore(`/api/v0/messages.json?msgTypes=PROGRAM&pagination=${LISTED}`, readWholeMessages);
  return (
    <Panel title="Published" wide aside="anybody can run them">
      <Loaded from={listed}>
        {({ messages }) =>
          messages.length === 0 ? (
            <Empty title="Nobody has published a program yet." />
          ) : (
            <SortTable
              label="programs"
              columns={COLUMNS}
              rows={messages.map(rowOf)}
              keyOf={({ message }) => message.item_hash}
              first="time"
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

const formOf = (at: number): ProgramForm => {
  const { name, runtime, code } = EXAMPLES[at]!;
  return { name, runtime, code, memory: '128', timeout: '30' };
};

interface EditorProps {
  readonly form: ProgramForm;
  readonly edit: (change: Partial<ProgramForm>) => void;
}

function Editor({ form, edit }: EditorProps) {
  const input = (name: 'name' | 'memory' | 'timeout', label: string, isNumber: boolean) => (
    <label class={isNumber ? 'number-field' : ''}>
      {label}
      <input
        name={name}
        value={form[name]}
        autocomplete="off"
        spellcheck={false}
        {...(isNumber ? { inputMode: 'numeric' as const } : {})}
        required
        onInput={({ currentTarget }) => edit({ [name]: currentTarget.value })}
      />
    </label>
  );
  return (
    <>
      {input('name', 'Name', false)}
      <label>
        Runtime
        <select value={form.runtime} onChange={({ currentTarget }) => edit({ runtime: currentTarget.value })}>
          {RUNTIMES.map((runtime) => (
            <option key={runtime} value={runtime}>
              {runtime}
            </option>
          ))}
        </select>
      </label>
      {input('memory', 'MiB of memory', true)}
      {input('timeout', 'Seconds a call', true)}
      <label class="wide-field">
        Code
        <textarea
          name="code"
          rows={14}
          spellcheck={false}
          autocapitalize="off"
          required
          value={form.code}
          onInput={({ currentTarget }) => edit({ code: currentTarget.value })}
        />
      </label>
    </>
  );
}

/** What it will cost, while it is being typed. */
function Foreseen({ form }: { readonly form: ProgramForm }) {
  const { coreUrl } = useNetwork();
  // Neither its name nor its code changes that.
  const read = readProgramForm({ ...form, name: 'x', code: 'x' });
  const quoted = useProof(
    'quote',
    'content' in read ? { coreUrl, priced: { type: 'PROGRAM', content: read.content } } : undefined,
  );
  return quoted.kind === 'proven' && quoted.value !== null ? (
    <Price title="Kept, it costs" cost={quoted.value} />
  ) : null;
}

function Write() {
  const { form, edit, drop } = useDraft('program', formOf(0));
  const publishing = useAction(async (content: Readonly<Record<string, unknown>>) => {
    const { itemHash } = await act({ kind: 'createProgram', content });
    drop();
    location.hash = linkTo(['programs', itemHash]);
  });
  const [fault, setFault] = useState<string>();
  const isBusy = publishing.state.kind === 'running';
  const send = () => {
    const read = readProgramForm(form);
    setFault('fault' in read ? read.fault : undefined);
    if ('content' in read) publishing.run(read.content);
    else publishing.forget();
  };
  return (
    <Panel
      title="Write one"
      wide
      aside={
        <label class="choice">
          Begin with
          <select onChange={({ currentTarget }) => edit(formOf(Number(currentTarget.value)))}>
            {EXAMPLES.map(({ title }, at) => (
              <option key={title} value={at}>
                {title}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <form
        class="fields"
        aria-label="program"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Editor form={form} edit={edit} />
        <div class="wide-field sending">
          {fault === undefined ? null : (
            <p class="wrong" role="alert">
              {fault}
            </p>
          )}
          {publishing.state.kind === 'failed' ? <Failed failure={publishing.state.failure} /> : null}
          <button type="submit" class="primary" disabled={!identity.value || isBusy}>
            {isBusy ? 'Waiting for your signature' : 'Look at it and sign'}
          </button>
          {/* Below: what comes later than the form must not move the button from under a finger. */}
          <Foreseen form={form} />
        </div>
      </form>
    </Panel>
  );
}

/** Programs: those there are, and an editor for another one. */
export function Programs() {
  return (
    <>
      <h1>Programs</h1>
      <NeedKey what="A program" />
      <div class="panels">
        <Write />
        <Published />
      </div>
    </>
  );
}
