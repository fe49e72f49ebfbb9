import { useState } from 'preact/hooks';
import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { Panel } from '../../parts/basic.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Failed } from '../../parts/states.tsx';
import { firewallOf, PORTS_FAULT, portsText } from '../../pure/owner/machine-form.ts';

/** Which ports of a machine are open to everybody, for its owner to change while it runs. */
export function MachineOpenPorts({ machine }: { readonly machine: Instance }) {
  const { instance_id: instanceId, updated_at: after, firewall } = machine;
  const [fault, setFault] = useState<string>();
  const doing = useAction((changes: Readonly<Record<string, unknown>>) =>
    act({ kind: 'update', instanceId, changes, after }),
  );
  const now = portsText(firewall);
  const change = (typed: string) => {
    const open = firewallOf(typed);
    setFault(open ? undefined : PORTS_FAULT);
    // It is changed as a whole.
    const { proxyProtocol } = firewall;
    if (open) doing.run({ firewall: { ...open, ...(proxyProtocol ? { proxyProtocol } : {}) } });
    else doing.forget();
  };
  return (
    <Panel title="Open to everybody">
      <Form
        key={now}
        label="open ports"
        button="Change the ports"
        isBusy={doing.state.kind === 'running'}
        onSend={({ ports = '' }) => change(ports)}
      >
        <Field name="ports" label="Ports" value={now} placeholder="22, 443, udp:443" isWide />
      </Form>
      {fault === undefined ? null : (
        <p class="failed" role="alert">
          {fault}
        </p>
      )}
      {doing.state.kind === 'failed' ? <Failed failure={doing.state.failure} /> : null}
      {doing.state.kind === 'done' ? (
        <p class="muted" role="status">
          Sent. Its node opens and closes them while the machine runs.
        </p>
      ) : null}
    </Panel>
  );
}
