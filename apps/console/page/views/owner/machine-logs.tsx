import { useState } from 'preact/hooks';
import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { download } from '../../data/download.ts';
import { type Identity, identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { zone } from '../../data/settings.ts';
import { verify } from '../../data/workers.ts';
import { Field, Form } from '../../parts/form.tsx';
import { Failed, Loaded } from '../../parts/states.tsx';
import { clock, count } from '../../pure/format.ts';
import { findInLog, logText } from '../../pure/owner/log-text.ts';
import type { LogLine } from '../../workers/machine/logs.ts';
import { Lines, OFTEN_MS, type OnRefused, OwnersLog, useOwnersLog } from './owner-log.tsx';

/** All that is kept may be a megabyte. */
const WHOLE_MS = 30_000;

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
  readonly onRefused: OnRefused;
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
  const read = useOwnersLog(
    `${instanceId} ${nodeAddress} ${by.address} ${isWhole}`,
    () => verify('machineLogs', { ...of, isWhole }, { by }),
    onRefused,
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
  const me = identity.value;
  if (me?.address !== machine.owner.toLowerCase() || machine.node_address === null) return null;
  return (
    <OwnersLog title="Its console" show="Show what it says">
      {(onRefused) => <Following machine={machine} by={me} onRefused={onRefused} />}
    </OwnersLog>
  );
}
