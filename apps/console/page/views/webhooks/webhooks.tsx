import type { WebhookView } from '@skerry/protocol/api/core/webhooks';
import { useEffect, useState } from 'preact/hooks';
import { type Action, useAction } from '../../data/action.ts';
import { identity } from '../../data/identity.ts';
import { askWebhook } from '../../data/webhooks.ts';
import { Badge, Hash, Panel, Safe, Time, type Tone } from '../../parts/basic.tsx';
import { Command } from '../../parts/command.tsx';
import { Empty, Failed, Loading } from '../../parts/states.tsx';
import { NeedKey } from '../owner/need-key.tsx';
import { Deliveries } from './deliveries.tsx';
import { Register } from './register.tsx';

const TONES: Readonly<Record<string, Tone>> = { active: 'good', paused: 'warn', disabled: 'bad' };

type Control = 'test' | 'pause' | 'resume' | 'delete';
const DONE: Readonly<Record<Control, string>> = {
  test: 'A test is on its way.',
  pause: 'Paused: events wait in the log.',
  resume: 'Resumed: what was missed is delivered.',
  delete: 'Deleted, with its address and its secrets.',
};

interface OneProps {
  readonly webhook: WebhookView;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  /** How the core node has it now; null once it is gone. */
  readonly onChanged: (webhook: WebhookView | null) => void;
}

function Controls({ webhook: { webhook_id: id, status }, isOpen, onOpen, onChanged }: OneProps) {
  const [isSure, setSure] = useState(false);
  const { state, run } = useAction(async (name: Control) => {
    const answer = await askWebhook(name, { id });
    if (answer === null || 'webhook_id' in answer) onChanged(answer);
    return DONE[name];
  });
  const isBusy = state.kind === 'running';
  const button = (name: Control, title: string) => (
    <button type="button" class="plain" disabled={isBusy} onClick={() => run(name)}>
      {title}
    </button>
  );
  return (
    <>
      <p class="actions">
        <button type="button" class="plain" aria-expanded={isOpen} onClick={onOpen}>
          Deliveries
        </button>
        {status === 'active' ? button('test', 'Send a test') : null}
        {status === 'active' ? button('pause', 'Pause') : button('resume', 'Resume')}
        {isSure ? (
          button('delete', 'Delete it and its secrets')
        ) : (
          <button type="button" class="plain" onClick={() => setSure(true)}>
            Delete
          </button>
        )}
      </p>
      {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
      {state.kind === 'done' ? (
        <p class="muted" role="status">
          {state.value}
        </p>
      ) : null}
    </>
  );
}

const filtersOf = ({ filters }: WebhookView) =>
  Object.entries(filters)
    .map(([name, values]) => `${name}: ${values.join(', ')}`)
    .join('; ');

function One(props: OneProps) {
  const { webhook, isOpen } = props;
  return (
    <li class="webhook">
      <p class="actions">
        <Badge tone={TONES[webhook.status] ?? 'plain'}>{webhook.status}</Badge>
        <b>
          <Safe text={webhook.url} limit={120} />
        </b>
        <Hash value={webhook.webhook_id} />
      </p>
      <p class="muted">
        {webhook.events.join(', ')}
        {filtersOf(webhook) === '' ? null : (
          <>
            {' · '}
            <Safe text={filtersOf(webhook)} limit={300} />
          </>
        )}
        {' · '}
        {webhook.delivered_ms === null ? (
          'nothing delivered yet'
        ) : (
          <>
            delivered <Time ms={webhook.delivered_ms} />
          </>
        )}
      </p>
      {webhook.failing_since_ms === null ? null : (
        <p class="wrong">
          failing since <Time ms={webhook.failing_since_ms} />
        </p>
      )}
      {webhook.reason === null ? null : (
        <p class="wrong">
          <Safe text={webhook.reason.message} /> <code>{webhook.reason.code}</code>
        </p>
      )}
      <Controls {...props} />
      {isOpen ? <Deliveries id={webhook.webhook_id} /> : null}
    </li>
  );
}

interface RegistrationsProps {
  readonly list: Action<undefined, void>;
  /** Undefined until the core node was asked for them. */
  readonly rows: readonly WebhookView[] | undefined;
  readonly setRows: (rows: readonly WebhookView[]) => void;
}

function Registrations({ list: { state, run }, rows, setRows }: RegistrationsProps) {
  const [open, setOpen] = useState<string>();
  const change = (id: string, changed: WebhookView | null) =>
    setRows((rows ?? []).flatMap((one) => (one.webhook_id === id ? (changed ?? []) : one)));
  return (
    <Panel
      title="Your webhooks"
      wide
      aside={<span class="muted">the core node tells them to their owner alone</span>}
    >
      <p class="actions">
        <button
          type="button"
          class={rows ? 'plain' : 'primary'}
          disabled={!identity.value || state.kind === 'running'}
          onClick={() => run(undefined)}
        >
          {rows ? 'Ask again' : 'Ask for them'}
        </button>
      </p>
      {state.kind === 'running' ? <Loading /> : null}
      {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
      {rows?.length === 0 ? <Empty title="You have none on this core node." /> : null}
      <ul class="webhooks">
        {(rows ?? []).map((webhook) => (
          <One
            key={webhook.webhook_id}
            webhook={webhook}
            isOpen={open === webhook.webhook_id}
            onOpen={() =>
              setOpen((before) => (before === webhook.webhook_id ? undefined : webhook.webhook_id))
            }
            onChanged={(changed) => change(webhook.webhook_id, changed)}
          />
        ))}
      </ul>
    </Panel>
  );
}

/** Webhooks of the reader: registrations, deliveries, send again. Each question is signed. */
export function Webhooks() {
  const [rows, setRows] = useState<readonly WebhookView[]>();
  const list = useAction(async (_: undefined, signal) => {
    const told = await askWebhook('list', {});
    if (!signal.aborted) setRows(told);
  });
  const owner = identity.value?.address;
  const forget = () => {
    list.forget();
    setRows(undefined);
  };
  useEffect(forget, [owner]);
  return (
    <>
      <h1>Webhooks</h1>
      <NeedKey what="Every question about webhooks" />
      <div class="panels">
        <Registrations list={list} rows={rows} setRows={setRows} />
        {/* To list them is another question, which only the reader begins. */}
        <Register onRegistered={forget} />
        <Panel title="From a shell">
          <p class="muted">The same, with a key of yours that stands in a file.</p>
          <Command text="skerry webhook list" />
          <Command text="skerry webhook deliveries ID" />
          <Command text="skerry webhook replay ID --event EVENT" />
        </Panel>
      </div>
    </>
  );
}
