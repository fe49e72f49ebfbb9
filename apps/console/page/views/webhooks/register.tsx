import { useState } from 'preact/hooks';
import { useAction } from '../../data/action.ts';
import { identity } from '../../data/identity.ts';
import { askWebhook } from '../../data/webhooks.ts';
import { Facts, Hash, Panel } from '../../parts/basic.tsx';
import { Command } from '../../parts/command.tsx';
import { Field, Form, type Typed } from '../../parts/form.tsx';
import { Failed } from '../../parts/states.tsx';
import { WEBHOOK_EVENTS, webhookCommand, webhookOf } from './webhook-form.ts';

const FIRST_EVENT = 'message.new';

const Events = () => (
  <fieldset class="wide-field checks">
    <legend>Tell it when</legend>
    {Object.entries(WEBHOOK_EVENTS).map(([event, meaning]) => (
      <label key={event}>
        <input type="checkbox" name={event} defaultChecked={event === FIRST_EVENT} />
        <span>
          {meaning} <code>{event}</code>
        </span>
      </label>
    ))}
  </fieldset>
);

/** Registers a webhook; without a key, it shows the command that does. */
export function Register({ onRegistered }: { readonly onRegistered: () => void }) {
  const [command, setCommand] = useState<string>();
  const { state, run } = useAction(async (typed: Typed) => {
    const made = await askWebhook('register', webhookOf(typed));
    onRegistered();
    return made;
  });
  const send = (typed: Typed) => {
    setCommand(webhookCommand(typed));
    if (identity.value) run(typed);
  };
  return (
    <Panel title="Register one">
      <Form
        label="register"
        button={identity.value ? 'Register' : 'Show the command'}
        isBusy={state.kind === 'running'}
        onSend={send}
      >
        <Field
          name="url"
          label="Address that is called"
          placeholder="https://example.org/hook"
          isRequired
          isWide
          limit={2_048}
        />
        <Events />
        <Field name="types" label="Only types" placeholder="POST, INSTANCE" limit={512} />
        <Field name="channels" label="Only channels" limit={512} />
        <Field name="senders" label="Only senders" placeholder="0x…" limit={2_048} />
        <Field name="tags" label="Only tags" limit={512} />
      </Form>
      {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
      {state.kind === 'done' ? (
        <div role="status" class="verdict good" data-state="registered">
          <p class="verdict-title">
            <span class="lamp" aria-hidden="true" />
            Registered.
          </p>
          <p>Deliveries are signed with this secret. It was made here, and nobody shows it again.</p>
          <Command text={state.value.secret} />
          <Facts rows={[['webhook', <Hash value={state.value.webhookId} />]]} />
        </div>
      ) : null}
      {command === undefined ? null : (
        <>
          <p class="muted">The same from a shell:</p>
          <Command text={command} />
        </>
      )}
    </Panel>
  );
}
