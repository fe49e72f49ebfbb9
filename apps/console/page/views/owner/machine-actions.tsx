import { useState } from 'preact/hooks';
import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { identity } from '../../data/identity.ts';
import { Panel } from '../../parts/basic.tsx';
import { Failed } from '../../parts/states.tsx';
import type { Action } from '../../workers/actions.ts';
import { MachineCopies } from './machine-copies.tsx';
import { MachineDomains } from './machine-domains.tsx';
import { MachineLogs } from './machine-logs.tsx';
import { MachineName } from './machine-name.tsx';
import { MachineOpenPorts } from './machine-ports.tsx';
import { MachineTraffic } from './machine-traffic.tsx';

/** What its owner may do with a machine; nothing for anybody else. */
export function MachineActions({ machine }: { readonly machine: Instance }) {
  const { instance_id: instanceId, updated_at: after, desired } = machine;
  const [isSure, setSure] = useState(false);
  const doing = useAction((action: Action) => act(action));
  if (identity.value?.address !== machine.owner.toLowerCase()) return null;
  const isBusy = doing.state.kind === 'running';
  const control = (action: 'start' | 'stop' | 'restart') =>
    doing.run({ kind: 'control', instanceId, action, after });
  return (
    <>
      <Panel title="It is yours" wide>
        <div class="actions">
          {desired === 'stopped' ? (
            <button type="button" class="primary" disabled={isBusy} onClick={() => control('start')}>
              Start
            </button>
          ) : (
            <>
              <button type="button" class="plain" disabled={isBusy} onClick={() => control('restart')}>
                Restart
              </button>
              <button type="button" class="plain" disabled={isBusy} onClick={() => control('stop')}>
                Stop
              </button>
            </>
          )}
          <button
            type="button"
            class="plain danger"
            disabled={isBusy}
            onClick={() => (isSure ? doing.run({ kind: 'forget', hashes: [instanceId] }) : setSure(true))}
          >
            {isSure ? 'Delete it and its disk' : 'Delete'}
          </button>
          {isSure ? (
            <button type="button" class="plain" onClick={() => setSure(false)}>
              Keep it
            </button>
          ) : null}
        </div>
        <MachineName machine={machine} />
        {doing.state.kind === 'failed' ? <Failed failure={doing.state.failure} /> : null}
        {doing.state.kind === 'done' ? (
          <p class="muted" role="status">
            Sent. What happens to it is shown below.
          </p>
        ) : null}
      </Panel>
      <MachineLogs machine={machine} />
      <MachineCopies machine={machine} />
      <MachineOpenPorts machine={machine} />
      <MachineDomains machine={machine} />
      <MachineTraffic machine={machine} />
    </>
  );
}
