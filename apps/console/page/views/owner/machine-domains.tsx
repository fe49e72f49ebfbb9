import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { ask } from '../../data/ask.ts';
import { useNetwork } from '../../data/network.ts';
import { askAgain, useResource } from '../../data/resource.ts';
import { Badge, Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Failed } from '../../parts/states.tsx';
import { type Domain, domainsOf, type Needed, readClaims, readDomains } from '../../pure/owner/domains.ts';
import { useNodeUrl } from '../machine/urls.ts';

/** Name servers are asked when something changes, which takes some seconds. */
const EVERY_MS = 5_000;

const FOUND = { good: 'found', warn: 'not found', plain: 'no name server answers' } as const;
const toneOf = ({ isFound }: Needed) => (isFound === null ? 'plain' : isFound ? 'good' : 'warn');

const Records = ({ needed }: { readonly needed: readonly Needed[] }) => (
  <div class="scroll">
    <table class="rows" aria-label="DNS records that it needs">
      <thead>
        <tr>
          <th>Type</th>
          <th>Name</th>
          <th>Value</th>
          <th>At its name servers</th>
        </tr>
      </thead>
      <tbody>
        {needed.map((one) => (
          <tr key={one.type}>
            <td data-title="Type">{one.type.toUpperCase()}</td>
            <td data-title="Name">
              <code>
                <Safe text={one.name} limit={300} />
              </code>
            </td>
            <td data-title="Value">
              <code>
                <Safe text={one.value} limit={300} />
              </code>
            </td>
            <td data-title="At its name servers">
              <Badge tone={toneOf(one)}>{FOUND[toneOf(one)]}</Badge>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

interface LineProps {
  readonly domain: Domain;
  readonly isBusy: boolean;
  readonly onDetach: () => void;
}

const Line = ({ domain: { name, isActive, needed }, isBusy, onDetach }: LineProps) => (
  <li class="domain" data-domain={isActive ? 'active' : needed ? 'waiting' : 'unknown'}>
    <span class="actions">
      <b class="grow">
        <Safe text={name} limit={253} />
      </b>
      <Badge tone={isActive ? 'good' : 'warn'}>{isActive ? 'leads here' : 'not yet'}</Badge>
      <button type="button" class="plain" disabled={isBusy} onClick={onDetach} aria-label={`Detach ${name}`}>
        Detach
      </button>
    </span>
    {needed ? (
      <Records needed={needed} />
    ) : (
      <p class="muted">
        Its node does not know it. It takes a moment to hear of it, and serves domains where its operator set{' '}
        <code>SKERRY_COMPUTE_DOMAIN_ZONE</code>.
      </p>
    )}
  </li>
);

/** Names of the owner's own that lead to a machine: what the DNS has to say, and what of it was found. */
export function MachineDomains({ machine }: { readonly machine: Instance }) {
  const { coreUrl } = useNetwork();
  const { instance_id: instanceId, owner } = machine;
  const claimsUrl = `${coreUrl}/api/v0/aggregates?address=${encodeURIComponent(owner)}&key=domains&limit=1`;
  const claims = useResource(claimsUrl, (signal) => ask(claimsUrl, readClaims, signal), EVERY_MS);
  const node = useNodeUrl(machine);
  const nodeUrl = node === '' ? '' : `${node}/domains/status`;
  const atNode = useResource(
    nodeUrl,
    async (signal) => (nodeUrl === '' ? undefined : ask(nodeUrl, readDomains, signal)),
    nodeUrl === '' ? Number.POSITIVE_INFINITY : EVERY_MS,
  );
  const doing = useAction(async ({ name, isGone }: { readonly name: string; readonly isGone: boolean }) => {
    await act({ kind: 'domain', name, instanceId: isGone ? null : instanceId });
    for (const url of [claimsUrl, nodeUrl]) askAgain(url);
  });
  const domains = domainsOf(instanceId, owner, { claims: claims.value, atNode: atNode.value });
  const failure = doing.state.kind === 'failed' ? doing.state.failure : (claims.failure ?? atNode.failure);
  const isBusy = doing.state.kind === 'running';
  return (
    <Panel
      title="Domains of your own"
      wide
      aside={<ProofMark kind="said" of="coreWord" source={claimsUrl} label="core node, its node" />}
    >
      {domains.length === 0 ? null : (
        <ul class="lines">
          {domains.map((one) => (
            <Line
              key={one.name}
              domain={one}
              isBusy={isBusy}
              onDetach={() => doing.run({ name: one.name, isGone: true })}
            />
          ))}
        </ul>
      )}
      <Form
        key={doing.state.kind === 'done' ? domains.length : ''}
        label="a domain of your own"
        button="Attach it"
        isBusy={isBusy}
        onSend={({ name = '' }) => doing.run({ name, isGone: false })}
      >
        <Field name="name" label="Domain" placeholder="www.example.org" isRequired isWide limit={254} />
      </Form>
      {failure ? <Failed failure={failure} /> : null}
    </Panel>
  );
}
