import type { DeliveryView } from '@skerry/protocol/api/core/webhooks';
import { useEffect } from 'preact/hooks';
import { useAction } from '../../data/action.ts';
import { askWebhook } from '../../data/webhooks.ts';
import { Badge, Safe, Time, type Tone, Until } from '../../parts/basic.tsx';
import { Empty, Failed, Loading } from '../../parts/states.tsx';

const TONES: Readonly<Record<string, Tone>> = { delivered: 'good', waiting: 'warn', dead: 'bad' };

/** How the last attempt went. */
function Last({ delivery: { log, attempts, next_attempt_ms: next } }: { readonly delivery: DeliveryView }) {
  const last = log.at(-1);
  return (
    <span class="stack">
      {last ? (
        <span>
          {last.status === null ? <code>{last.code ?? 'no answer'}</code> : `HTTP ${last.status}`} in{' '}
          {last.duration_ms} ms, <Time ms={last.at_ms} />
        </span>
      ) : (
        <span class="muted">not tried yet</span>
      )}
      {last?.message ? (
        <span class="muted">
          <Safe text={last.message} limit={300} />
        </span>
      ) : null}
      <span class="muted">
        {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
        {next === null ? null : (
          <>
            , <Until ms={next} before="again" passed="again now" />
          </>
        )}
      </span>
    </span>
  );
}

function Delivery({ id, delivery }: { readonly id: string; readonly delivery: DeliveryView }) {
  const { event, event_id: eventId, state: outcome } = delivery;
  const { state, run } = useAction((_: undefined) => askWebhook('replay', { id, eventId }));
  return (
    <li>
      <Badge tone={TONES[outcome] ?? 'plain'}>{outcome}</Badge>
      <span class="grow stack">
        <span>
          <Safe text={event} limit={64} />
        </span>
        <code class="muted">
          <Safe text={eventId} limit={64} />
        </code>
        {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
      </span>
      <Last delivery={delivery} />
      <button type="button" class="plain" disabled={state.kind === 'running'} onClick={() => run(undefined)}>
        {state.kind === 'done' ? 'Sent again' : 'Send again'}
      </button>
    </li>
  );
}

/** What was delivered, what waits and what was given up. */
export function Deliveries({ id }: { readonly id: string }) {
  const { state, run } = useAction((_: undefined) => askWebhook('deliveries', { id }));
  useEffect(() => run(undefined), [id]);
  if (state.kind === 'failed') return <Failed failure={state.failure} />;
  if (state.kind !== 'done') return <Loading lines={3} />;
  return state.value.length === 0 ? (
    <Empty title="Nothing was to be delivered yet." />
  ) : (
    <>
      <ul class="lines deliveries">
        {state.value.map((delivery) => (
          <Delivery key={delivery.event_id} id={id} delivery={delivery} />
        ))}
      </ul>
      <p class="actions">
        <button type="button" class="plain" onClick={() => run(undefined)}>
          Ask again
        </button>
        <span class="muted">The core node keeps this for 14 days, without the bodies.</span>
      </p>
    </>
  );
}
