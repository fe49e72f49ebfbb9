import type { ComponentChildren } from 'preact';
import { type Instance, readInstance, readWhy, type Why } from '../../data/answers.ts';
import { machineLink, nodeLink } from '../../data/network.ts';
import { useProof } from '../../data/prove.ts';
import { useCore, useService } from '../../data/questions.ts';
import { Hash, Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Command } from '../../parts/command.tsx';
import { Loaded } from '../../parts/states.tsx';
import { linkTo } from '../../pure/route.ts';
import { TryHttps } from '../machine/https.tsx';
import { useMachineUrls } from '../machine/urls.ts';

const SOON_MS = 2_000;

interface Stage {
  readonly title: string;
  readonly isDone: boolean;
  readonly isFailed?: boolean;
  readonly detail: ComponentChildren;
}

const stagesOf = (machine: Instance, why: Why | undefined): readonly Stage[] => {
  const { node_id: node, ipv6, phase, reason } = machine;
  const isRunning = phase === 'running';
  return [
    { title: 'The network has it', isDone: true, detail: 'signed, and processed by the core node' },
    {
      title: 'A node was chosen',
      isDone: node !== null && ipv6 !== '',
      detail:
        node === null ? (
          (reason?.message ?? 'the scheduler chooses')
        ) : (
          <>
            <Hash value={node} href={nodeLink(node)} /> {ipv6}
          </>
        ),
    },
    {
      title: 'It runs',
      isDone: isRunning,
      isFailed: phase === 'failed',
      detail: isRunning ? 'the guest says it is up' : (reason?.message ?? `phase: ${phase}`),
    },
    {
      title: 'It is reachable under its name',
      isDone: why !== undefined && why.missing === null,
      detail: !isRunning
        ? 'when it runs'
        : why?.missing
          ? why.missing.message
          : why
            ? 'the gateway leads to it'
            : 'asking the gateway',
    },
  ];
};

const Stages = ({ stages }: { readonly stages: readonly Stage[] }) => {
  const next = stages.findIndex(({ isDone }) => !isDone);
  return (
    <ol class="chain" data-state={next < 0 ? 'reachable' : 'underway'}>
      {stages.map(({ title, isDone, isFailed, detail }, at) => (
        <li key={title} class={isDone ? 'good' : isFailed ? 'bad' : at === next ? 'next' : 'plain'}>
          <span class="step">
            <b>{title}</b>
            <span class="muted">
              {typeof detail === 'string' ? <Safe text={detail} limit={300} /> : detail}
            </span>
          </span>
        </li>
      ))}
    </ol>
  );
};

function Address({ id, machine }: { readonly id: string; readonly machine: Instance }) {
  const urls = useMachineUrls(id);
  if (!urls) return null;
  return (
    <Panel title="Use it">
      <p>
        <a href={urls.https} target="_blank" rel="noopener noreferrer">
          {urls.https}
        </a>{' '}
        <span class="muted">
          answers as soon as a server in it listens on port 443, with its own certificate.
        </span>
      </p>
      <TryHttps key={urls.https} id={id} url={urls.https} />
      <p>
        <a href={urls.http} target="_blank" rel="noopener noreferrer">
          {urls.http}
        </a>{' '}
        <span class="muted">the same for port 80, which nothing encrypts.</span>
      </p>
      {machine.ipv6 === '' ? null : <Command text={`ssh root@${machine.ipv6}`} />}
    </Panel>
  );
}

function Following({ id, machine }: { readonly id: string; readonly machine: Instance }) {
  const why = useService('gateway', `/api/why/${id}`, readWhy, SOON_MS);
  const names = useProof('hostnames', { ids: [id] });
  return (
    <div class="panels">
      <Panel title="How far it is" aside={<a href={machineLink(id)}>everything about it</a>}>
        <p class="foreseen">
          {names.kind === 'proven' ? <b class="hostname">{names.value[id]}</b> : null}
          <ProofMark
            of="hostname"
            message={id}
            kind={names.kind === 'proven' ? 'proven' : 'waiting'}
            label="its name"
          />
        </p>
        <Stages stages={stagesOf(machine, why.value)} />
      </Panel>
      <Address id={id} machine={machine} />
    </div>
  );
}

/** A machine on its way from its message to an answer under its name. */
export function Follow({ id }: { readonly id: string }) {
  const asked = useCore(`/api/v0/instances/${encodeURIComponent(id)}`, readInstance, SOON_MS);
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['machines'])}>Machines</a>
      </p>
      <h1>{asked.value ? <Safe text={asked.value.name} limit={60} /> : 'Your machine'} is on its way</h1>
      <Loaded from={asked} lines={5}>
        {(machine) => <Following id={machine.instance_id} machine={machine} />}
      </Loaded>
    </>
  );
}
