import { type Explanation, type Instance, readExplanation, readProvableInstance } from '../data/answers.ts';
import { identity } from '../data/identity.ts';
import { messageLink, nodeLink, useNetwork } from '../data/network.ts';
import { useProof } from '../data/prove.ts';
import { instancePath, useCore, useService } from '../data/questions.ts';
import { Badge, Facts, Hash, Panel, ProofMark, Safe, Time } from '../parts/basic.tsx';
import { Lazy } from '../parts/lazy.tsx';
import { Loaded, Unknown } from '../parts/states.tsx';
import { cores, mebibytes, score } from '../pure/format.ts';
import { linkTo } from '../pure/route.ts';
import { TimelinePanel } from './machine/timeline.tsx';
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
    <Panel
      title="Why it is where it is"
      aside={<ProofMark kind="said" of="schedulerWord" source={explained.source} label="scheduler" />}
    >
      {explained.isKnown ? (
        <Loaded from={explained}>{(value) => <Explained value={value} />}</Loaded>
      ) : (
        <Unknown service="scheduler" />
      )}
    </Panel>
  );
}

interface AboutProps {
  readonly machine: Instance & { readonly whole: unknown };
  readonly hostname: string | undefined;
}

/** How a machine is, and whether that follows from what was signed. */
function AboutPanel({ machine, hostname }: AboutProps) {
  const { node_id: node } = machine;
  const { coreUrl, info } = useNetwork();
  const schedulers = info?.trust.schedulers.value;
  const proof = useProof('machines', schedulers && { coreUrl, rows: [machine.whole], schedulers });
  const judged = proof.kind === 'proven' ? proof.value[0] : undefined;
  return (
    <Panel
      title="About it"
      aside={
        <span data-whole={judged?.kind ?? 'waiting'}>
          <PhaseBadge phase={machine.phase} />{' '}
          <ProofMark
            kind={judged?.kind ?? 'waiting'}
            of="machine"
            message={machine.instance_id}
            why={judged?.why}
          />
        </span>
      }
    >
      {judged === undefined ? null : (
        <p class={judged.kind === 'wrong' ? 'wrong' : 'muted'}>
          <Safe
            text={judged.kind === 'proven' ? `All of it follows ${judged.why}.` : judged.why}
            limit={300}
          />
        </p>
      )}
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
              <ProofMark kind="waiting" of="hostname" message={machine.instance_id} />
            ) : (
              <>
                <ProofMark kind="proven" of="hostname" message={machine.instance_id} /> {hostname}
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
  const asked = useCore(instancePath(id), readProvableInstance);
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
              show={({ MachineCost, MachinePorts, MachineVolumes }) => (
                <>
                  <MachineCost machine={machine} />
                  <MachinePorts machine={machine} />
                  <MachineVolumes id={machine.instance_id} />
                </>
              )}
            />
            <TimelinePanel machine={machine} />
            <PlacePanel id={machine.instance_id} />
          </div>
        )}
      </Loaded>
    </>
  );
}
