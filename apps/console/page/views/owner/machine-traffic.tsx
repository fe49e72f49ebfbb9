import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { identity } from '../../data/identity.ts';
import { serviceUrl, useNetwork } from '../../data/network.ts';
import { verify } from '../../data/workers.ts';
import { DateTime, Facts, Panel, ProofMark } from '../../parts/basic.tsx';
import { Failed } from '../../parts/states.tsx';
import { bytes, count } from '../../pure/format.ts';
import type { Traffic } from '../../workers/traffic.ts';

const Told = ({ traffic }: { readonly traffic: Traffic }) => (
  <div data-state="counted">
    <Facts
      rows={[
        ['counted since', traffic.sinceMs === null ? 'nothing came yet' : <DateTime ms={traffic.sinceMs} />],
        ['TLS connections', `${count(traffic.connections)}, ${count(traffic.open)} open now`],
        ['to the machine', bytes(traffic.bytesToMachine)],
        ['to clients', bytes(traffic.bytesToClients)],
        ['HTTP requests', count(traffic.requests)],
      ]}
    />
  </div>
);

/** What passed through the gateway to a machine, for its owner. */
export function MachineTraffic({ machine }: { readonly machine: Instance }) {
  const network = useNetwork();
  const me = identity.value;
  const gatewayUrl = serviceUrl(network, 'gateway');
  const { coreUrl } = network;
  const asking = useAction((of: { readonly gatewayUrl: string }) =>
    verify('traffic', { ...of, coreUrl, instanceId: machine.instance_id }, { by: me }),
  );
  if (me?.address !== machine.owner.toLowerCase() || !gatewayUrl) return null;
  const { state } = asking;
  return (
    <Panel
      title="Traffic under its name"
      wide
      aside={<ProofMark kind="said" of="gatewayWord" label="gateway, to its owner" />}
    >
      {state.kind === 'done' ? <Told traffic={state.value} /> : null}
      {state.kind === 'failed' ? <Failed failure={state.failure} /> : null}
      <div class="actions">
        <button
          type="button"
          class="plain"
          disabled={state.kind === 'running'}
          onClick={() => asking.run({ gatewayUrl })}
        >
          {state.kind === 'done' ? 'Count again' : 'Count traffic'}
        </button>
        <span class="muted">
          Bytes are those of TLS connections that have ended. You sign once an hour that this tab may ask.
        </span>
      </div>
    </Panel>
  );
}
