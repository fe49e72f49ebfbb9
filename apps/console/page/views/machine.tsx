import {
  type Explanation,
  type Instance,
  readExplanation,
  readInstance,
  readWholeMessages,
} from '../data/answers.ts';
import { identity } from '../data/identity.ts';
import { messageLink, nodeLink, useNetwork } from '../data/network.ts';
import { useProof } from '../data/prove.ts';
import { useCore, useService } from '../data/questions.ts';
import { Badge, DateTime, Facts, Hash, Mark, type MarkKind, Panel, Safe, Time } from '../parts/basic.tsx';
import { Lazy } from '../parts/lazy.tsx';
import { Empty, Loaded, Unknown } from '../parts/states.tsx';
import { cores, mebibytes, score } from '../pure/format.ts';
import { linkTo } from '../pure/route.ts';
import { type Step, timelineOf } from '../pure/timeline.ts';
import { MachineAddress } from './machine-address.tsx';
import { PhaseBadge } from './machines.tsx';
import { WhyPanel } from './names/why.tsx';

const Explained = ({ value }: { readonly value: Explanation }) => (
  <>
    <p>
      <Safe text={value.verdict.message} />
    </p>
    <ul class="lines">
      {value.decisions.toReversed().map(({ decided_at: at, kind, node_id: node, reason }) => (
        <li key={at}>
          <Badge tone={kind === 'refused' ? 'warn' : 'accent'}>{kind}</Badge>
          <span class="grow">
            {node === null ? (reason?.message ?? '') : <Hash value={node} href={nodeLink(node)} />}
          </span>
          <span class="muted">
            <Time ms={Date.parse(at)} />
          </span>
        </li>
      ))}
    </ul>
    <details>
      <summary>nodes that it was chosen from</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>node</th>
              <th class="number">free</th>
              <th class="number">score</th>
              <th class="number">rank value</th>
              <th>against it</th>
            </tr>
          </thead>
          <tbody>
            {value.candidates.map((one) => (
              <tr key={one.node_id}>
                <td>
                  <Hash value={one.node_id} href={nodeLink(one.node_id)} />
                </td>
                <td class="number">{(one.free_share * 100).toFixed(0)} %</td>
                <td class="number">{score(one.score)}</td>
                <td class="number">{one.weight.toFixed(3)}</td>
                <td>{one.against === null ? '–' : <Safe text={one.against.message} limit={120} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  </>
);

function PlacePanel({ id }: { readonly id: string }) {
  const explained = useService('scheduler', `/api/v0/explain/${id}`, readExplanation);
  return (
    <Panel title="Why it is where it is" aside={<Mark kind="said" label="scheduler" />}>
      {explained.isKnown ? (
        <Loaded from={explained}>{(value) => <Explained value={value} />}</Loaded>
      ) : (
        <Unknown service="scheduler" />
      )}
    </Panel>
  );
}

interface Marked {
  readonly mark: MarkKind;
  /** What is wrong with it. */
  readonly failure?: string | undefined;
}

const StepLine = ({ step, marked }: { readonly step: Step; readonly marked: Marked }) => (
  <li>
    <span class="when-step muted">
      <DateTime ms={step.atMs} />
    </span>
    <span class="grow stack">
      <span>
        <Mark kind={marked.mark} />{' '}
        <b>
          <Safe text={step.what} limit={40} />
        </b>{' '}
        {step.node === null ? null : <Hash value={step.node} href={nodeLink(step.node)} />}
      </span>
      {step.why === null ? null : (
        <span class="muted">
          <Safe text={step.why} limit={300} />
        </span>
      )}
      {marked.failure === undefined ? null : (
        <span class="wrong">
          <Safe text={marked.failure} limit={300} />
        </span>
      )}
    </span>
    <span class="stack">
      <Hash value={step.message.item_hash} href={messageLink(step.message.item_hash)} />
      <span class="muted">
        by <Hash value={step.message.sender} />
      </span>
    </span>
  </li>
);

const TOLD_MAX = 100;

/** What was told of it, each signed by who tells it. */
function TimelinePanel({ id }: { readonly id: string }) {
  const { coreUrl } = useNetwork();
  const told = useCore(
    `/api/v0/messages.json?refs=${id}&pagination=${TOLD_MAX}&bodies=shared`,
    readWholeMessages,
  );
  const asked = useCore(`/api/v0/messages.json?hashes=${id}&bodies=shared`, readWholeMessages, 60_000);
  const steps = timelineOf([...(asked.value?.messages ?? []), ...(told.value?.messages ?? [])]);
  const rows = steps.map(({ message }) => message);
  const proof = useProof('messages', rows.length === 0 ? undefined : { coreUrl, rows });
  const markedOf = (hash: string): Marked => {
    if (proof.kind === 'failed') return { mark: 'said' };
    const judged =
      proof.kind === 'proven' ? proof.value.find(({ itemHash }) => itemHash === hash) : undefined;
    if (judged === undefined) return { mark: 'waiting' };
    return judged.failure === undefined
      ? { mark: 'proven' }
      : { mark: 'wrong', failure: judged.failure.message };
  };
  return (
    <Panel title="What happened to it" wide aside="each line is a signed message">
      <Loaded from={told} lines={5}>
        {() =>
          steps.length === 0 ? (
            <Empty title="Nothing was told of it yet." />
          ) : (
            <ul class="lines timeline">
              {steps.map((step) => (
                <StepLine
                  key={step.message.item_hash}
                  step={step}
                  marked={markedOf(step.message.item_hash)}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function AboutPanel({
  machine,
  hostname,
}: {
  readonly machine: Instance;
  readonly hostname: string | undefined;
}) {
  const { node_id: node } = machine;
  return (
    <Panel title="About it" aside={<PhaseBadge phase={machine.phase} />}>
      {machine.reason === null ? null : (
        <p>
          <Safe text={machine.reason.message} limit={300} /> <code>{machine.reason.code}</code>
        </p>
      )}
      <Facts
        rows={[
          [
            'host name',
            hostname === undefined ? (
              <Mark kind="waiting" />
            ) : (
              <>
                <Mark kind="proven" /> {hostname}
              </>
            ),
          ],
          ['address', <MachineAddress machine={machine} />],
          ['wanted', machine.desired],
          ['node', node === null ? 'none yet' : <Hash value={node} href={nodeLink(node)} />],
          ['size', `${cores(machine.cpu)}, ${mebibytes(machine.memory)}, ${machine.disk} GiB of disk`],
          ['image', <Safe text={machine.image} limit={80} />],
          ['owner', <Hash value={machine.owner} href={linkTo(['messages'], { sender: machine.owner })} />],
          ['message', <Hash value={machine.instance_id} href={messageLink(machine.instance_id)} />],
          ['asked for', <Time ms={machine.created_at * 1_000} />],
        ]}
      />
    </Panel>
  );
}

/** One machine: how it is, what happened to it, why it is where it is and why its name answers. */
export function MachinePage({ id }: { readonly id: string }) {
  const asked = useCore(`/api/v0/instances/${encodeURIComponent(id)}`, readInstance);
  const names = useProof('hostnames', asked.value ? { ids: [asked.value.instance_id] } : undefined);
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['machines'])}>Machines</a>
      </p>
      <h1 class="title">
        {asked.value ? (
          <>
            Machine <Safe text={asked.value.name} limit={60} />
          </>
        ) : (
          'Machine'
        )}
      </h1>
      <Loaded from={asked} lines={6}>
        {(machine) => (
          <div class="panels">
            {identity.value ? (
              <Lazy
                load={() => import('./later.tsx')}
                show={({ MachineActions }) => <MachineActions machine={machine} />}
              />
            ) : null}
            <AboutPanel
              machine={machine}
              hostname={names.kind === 'proven' ? names.value[machine.instance_id] : undefined}
            />
            <WhyPanel subject={machine.instance_id} />
            <Lazy
              load={() => import('./later.tsx')}
              show={({ MachineCost, MachinePorts }) => (
                <>
                  <MachineCost machine={machine} />
                  <MachinePorts machine={machine} />
                </>
              )}
            />
            <TimelinePanel id={machine.instance_id} />
            <PlacePanel id={machine.instance_id} />
          </div>
        )}
      </Loaded>
    </>
  );
}
