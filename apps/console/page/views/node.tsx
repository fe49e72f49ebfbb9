import type { ComputeScore, CoreScore } from '../data/answers.ts';
import { readInstances } from '../data/answers.ts';
import { machineLink } from '../data/network.ts';
import { useCore, useMeasurements, useSchedulerNodes, useScores } from '../data/questions.ts';
import { Badge, Facts, Hash, Meter, Panel, ProofMark, Safe, Time } from '../parts/basic.tsx';
import { Chart } from '../parts/chart.tsx';
import { Lazy } from '../parts/lazy.tsx';
import { Empty, Failed, Loaded, Loading } from '../parts/states.tsx';
import { cores, latency, mebibytes, score } from '../pure/format.ts';
import { LATENCIES, measuredHistory, SCORE_PARTS, scoreHistory } from '../pure/history.ts';
import { meaningOfCode, mergeNodes, type NodeRow } from '../pure/nodes.ts';
import { linkTo } from '../pure/route.ts';
import { NodePlace } from './node-place.tsx';
import { NodeState } from './nodes.tsx';
import { Recompute } from './recompute.tsx';
import { SignedScore } from './signed-score.tsx';

const TONES = ['accent', 'second', 'third', 'plain'] as const;

function ScorePanel({ nodeId }: { readonly nodeId: string }) {
  const scores = useScores();
  const sender = scores.counting.messages.get(nodeId)?.sender;
  return (
    <Panel
      title="Score over time"
      aside={
        <ProofMark
          kind="said"
          of="monitorWord"
          source={scores.sourceOf(sender)}
          label="as its monitor published"
        />
      }
    >
      <Loaded from={scores} lines={6}>
        {({ messages }) => {
          const series = SCORE_PARTS.map(([name, partOf], at) => ({
            name,
            tone: TONES[at]!,
            points: scoreHistory(messages, nodeId, partOf, sender),
          }));
          return series[0]!.points.every(({ y }) => y === null) ? (
            <Empty title="It has no score yet.">
              <p class="muted">A monitor measures each hour, and publishes scores after it.</p>
            </Empty>
          ) : (
            <Chart
              label="score of the node in each message that was published, and what it is made of"
              series={series}
              format={(value) => score(value)}
            />
          );
        }}
      </Loaded>
    </Panel>
  );
}

function LatencyPanel({ nodeId, kind }: { readonly nodeId: string; readonly kind: 'core' | 'compute' }) {
  const measured = useMeasurements(kind, nodeId);
  return (
    <Panel title="What it is made of" aside={<span class="muted">latencies, two weeks</span>}>
      <Loaded from={measured} lines={6}>
        {({ metrics }) =>
          metrics.length === 0 ? (
            <Empty title="Nothing was measured yet." />
          ) : (
            <Chart
              label="latencies that were measured"
              series={LATENCIES[kind].map(([field, name], at) => ({
                name,
                tone: TONES[at]!,
                points: measuredHistory(metrics, field),
              }))}
              format={latency}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

const ScoreFacts = ({
  own,
  scores,
}: {
  readonly own: ComputeScore | CoreScore;
  readonly scores: string | undefined;
}) => (
  <Facts
    rows={[
      [
        'score',
        scores === undefined ? (
          score(own.total_score)
        ) : (
          <SignedScore nodeId={own.node_id} total={own.total_score} scores={scores} />
        ),
      ],
      ['before corrections', score(own.measurements.total_score)],
      ['hours that count', own.measurements.record_count],
      ['decentralization', score(own.decentralization)],
      [
        'its autonomous system',
        `${own.measurements.nodes_with_identical_asn ?? '?'} of ${own.measurements.total_nodes ?? '?'} nodes are in it`,
      ],
      ...('codes' in own
        ? [['remarks', own.codes.length === 0 ? 'none' : own.codes.map(meaningOfCode).join('; ')] as const]
        : []),
    ]}
  />
);

function AboutPanel({ row, scores }: { readonly row: NodeRow; readonly scores: string | undefined }) {
  const { scheduler } = row;
  return (
    <Panel title="About it" aside={<NodeState row={row} />}>
      {row.reason === null ? null : (
        <p>
          <Safe text={row.reason.message} /> <code>{row.reason.code}</code>
        </p>
      )}
      {row.free && row.capacity ? (
        <>
          <Meter
            label="Cores"
            taken={row.capacity.cpu - row.free.cpu}
            total={row.capacity.cpu}
            text={`${row.free.cpu} of ${row.capacity.cpu} free`}
          />
          <Meter
            label="Memory"
            taken={row.capacity.memory_mib - row.free.memory_mib}
            total={row.capacity.memory_mib}
            text={`${mebibytes(row.free.memory_mib)} of ${mebibytes(row.capacity.memory_mib)} free`}
          />
          <Meter
            label="Disk"
            taken={row.capacity.disk_gib - row.free.disk_gib}
            total={row.capacity.disk_gib}
            text={`${mebibytes(row.free.disk_gib * 1_024)} of ${mebibytes(row.capacity.disk_gib * 1_024)} free`}
          />
        </>
      ) : null}
      {row.score ? <ScoreFacts own={row.score} scores={scores} /> : null}
      {scheduler ? (
        <Facts
          rows={[
            ['address', <Hash value={scheduler.address} />],
            ['where', <NodePlace node={scheduler} />],
            ['range of machines', scheduler.ipv6 ?? '–'],
            ['version', <Safe text={scheduler.version} limit={32} />],
            [
              'features',
              scheduler.features.length === 0 ? '–' : <Safe text={scheduler.features.join(', ')} />,
            ],
            ['trust of the scheduler', scheduler.trust],
            ['announced', <Time ms={scheduler.announced_at * 1_000} />],
          ]}
        />
      ) : null}
    </Panel>
  );
}

function MachinesPanel({ nodeId }: { readonly nodeId: string }) {
  const held = useCore(`/api/v0/instances?node_id=${encodeURIComponent(nodeId)}&limit=50`, readInstances);
  return (
    <Panel title="Machines on it">
      <Loaded from={held}>
        {({ instances, pagination }) =>
          instances.length === 0 ? (
            <Empty title="None." />
          ) : (
            <ul class="lines">
              {instances.map((one) => (
                <li key={one.instance_id}>
                  <Badge tone={one.phase === 'running' ? 'good' : one.phase === 'failed' ? 'bad' : 'plain'}>
                    {one.phase}
                  </Badge>
                  <a class="grow" href={machineLink(one.instance_id)}>
                    <Safe text={one.name} limit={40} />
                  </a>
                  <span class="muted">
                    {cores(one.cpu)}, {mebibytes(one.memory)}
                  </span>
                </li>
              ))}
              {pagination.total > instances.length ? <li class="muted">of {pagination.total}</li> : null}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** One node: what is said of it, over time, and the proof. */
export function NodePage({ nodeId }: { readonly nodeId: string }) {
  const [scheduled, scores] = [useSchedulerNodes(), useScores()];
  const [newest] = scores.value?.messages ?? [];
  const rows = mergeNodes({ scheduled: scheduled.value?.nodes ?? [], ...scores.counting });
  const row = rows.find(({ id }) => id === nodeId);
  // Of a node without a score, the newest: why it has none is computed from it, too.
  const counts = scores.counting.messages.get(nodeId) ?? newest;
  const isAsking =
    (!scheduled.value && scheduled.isKnown && !scheduled.failure) || (!scores.value && !scores.failure);
  const failure = scheduled.failure ?? scores.failure;
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['nodes'])}>Nodes</a>
      </p>
      <h1 class="title">
        {row ? `${row.kind === 'core' ? 'Core' : 'Compute'} node ` : 'Node '}
        <Hash value={nodeId} />
      </h1>
      {row ? (
        <div class="panels">
          <ScorePanel nodeId={nodeId} />
          <LatencyPanel nodeId={nodeId} kind={row.kind} />
          <Lazy
            load={() => import('./later.tsx')}
            show={({ NodeHistory }) => <NodeHistory nodeId={nodeId} kind={row.kind} />}
          />
          <Recompute nodeId={nodeId} kind={row.kind} scores={counts?.item_hash} />
          <AboutPanel row={row} scores={counts?.item_hash} />
          {row.kind === 'compute' ? <MachinesPanel nodeId={nodeId} /> : null}
        </div>
      ) : isAsking ? (
        <Loading lines={6} />
      ) : failure ? (
        <Failed failure={failure} />
      ) : (
        <Empty title="Nobody tells of this node.">
          <p class="muted">Neither the scheduler nor the last scores of this network name it.</p>
        </Empty>
      )}
    </>
  );
}
