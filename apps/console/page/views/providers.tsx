import { nodeLink, useNetwork } from '../data/network.ts';
import { useProof } from '../data/prove.ts';
import { useSchedulerNodes, useScores } from '../data/questions.ts';
import type { Resource } from '../data/resource.ts';
import { Panel, Safe, Time } from '../parts/basic.tsx';
import { Fact } from '../parts/fact.tsx';
import { Empty, Failed, Loading } from '../parts/states.tsx';
import { type Column, SortTable } from '../parts/table.tsx';
import { mebibytes, short } from '../pure/format.ts';
import { mergeNodes, type NodeRow } from '../pure/nodes.ts';
import { byProvider, type Provider } from '../pure/providers.ts';

/** Nodes of one provider that are drawn, and providers that are shown. */
const DRAWN_MAX = 120;
const PROVIDERS_MAX = 50;

const stateOf = ({ isHealthy, score }: NodeRow) =>
  isHealthy === true
    ? 'good'
    : isHealthy === false || (score && 'status' in score && score.status === 'dead')
      ? 'warn'
      : 'plain';
const STATES = { good: 'takes machines', warn: 'takes no machines', plain: 'measured' } as const;

/** Each node as a square: its state, and how much of its cores is taken. */
function Square({ node }: { readonly node: NodeRow }) {
  const { id, kind, free, capacity } = node;
  const state = stateOf(node);
  const taken = free && capacity && capacity.cpu > 0 ? 1 - free.cpu / capacity.cpu : 0;
  const words = [`${kind} node ${short(id)}`, STATES[state]];
  const room = free && capacity ? [`${free.cpu} of ${capacity.cpu} cores free`] : [];
  const label = [...words, ...room].join(', ');
  return (
    <a class={`square ${state}`} href={nodeLink(id)} title={label} aria-label={label}>
      <span style={{ height: `${Math.min(1, Math.max(0, taken)) * 100}%` }} />
    </a>
  );
}

function Room(props: { readonly free: number; readonly total: number; readonly text: string }) {
  const { free, total, text } = props;
  if (total <= 0) return <>–</>;
  return (
    <span class="scorebar">
      <span class="number">{text}</span>
      <span class="track" aria-hidden="true">
        <span class="fill accent" style={{ width: `${Math.min(1, Math.max(0, 1 - free / total)) * 100}%` }} />
      </span>
    </span>
  );
}

function Name({ of }: { readonly of: Provider }) {
  const { asn, name, prefix } = of;
  if (asn === null) return prefix === null ? <>not known</> : <code>{prefix}</code>;
  return (
    <span class="stack">
      <span>AS{asn}</span>
      {name === null ? null : (
        <span class="muted">
          <Safe text={name} limit={60} />
        </span>
      )}
    </span>
  );
}

const COLUMNS: readonly Column<Provider>[] = [
  { name: 'provider', title: 'Provider', cell: (of) => <Name of={of} /> },
  {
    name: 'nodes',
    title: 'Nodes',
    cell: ({ nodes }) => (
      <span class="squares">
        {nodes.slice(0, DRAWN_MAX).map((node) => (
          <Square key={node.id} node={node} />
        ))}
        <span class="muted">
          {nodes.length > DRAWN_MAX ? `and ${nodes.length - DRAWN_MAX} more, ` : ''}
          {nodes.length}
        </span>
      </span>
    ),
  },
  {
    name: 'cores',
    title: 'Cores free',
    isNumber: true,
    cell: ({ room: { free, total } }) => (
      <Room free={free.cpu} total={total.cpu} text={`${free.cpu} of ${total.cpu}`} />
    ),
  },
  {
    name: 'memory',
    title: 'Memory free',
    isNumber: true,
    cell: ({ room: { free, total } }) => (
      <Room
        free={free.memory_mib}
        total={total.memory_mib}
        text={`${mebibytes(free.memory_mib)} of ${mebibytes(total.memory_mib)}`}
      />
    ),
  },
  {
    name: 'disk',
    title: 'Disk free',
    isNumber: true,
    cell: ({ room: { free, total } }) => (
      <Room
        free={free.disk_gib}
        total={total.disk_gib}
        text={`${mebibytes(free.disk_gib * 1_024)} of ${mebibytes(total.disk_gib * 1_024)}`}
      />
    ),
  },
];

const Source = ({ measuredAt }: { readonly measuredAt: number | null }) => (
  <p class="muted prose">
    A monitor has a table of whose addresses are whose; nodes that none measured stand by the /32 that they
    announce. Room is what nodes say they have, less what the scheduler placed. Nobody signs in which country
    a node is, so there is no map.{' '}
    {measuredAt === null ? null : (
      <>
        Measured <Time ms={measuredAt * 1_000} />.
      </>
    )}
  </p>
);

const isAsked = ({ value, failure }: Pick<Resource<unknown>, 'value' | 'failure'>) =>
  value === undefined && failure === undefined;

/** Who carries the nodes of the network, and how much room there is at each. */
export function Providers() {
  const { coreUrl, info } = useNetwork();
  const [scheduled, scores] = [useSchedulerNodes(), useScores()];
  const [newest] = scores.value?.messages ?? [];
  const publishers = info?.trust.scoring_publishers.value;
  const proof = useProof('systems', publishers && { coreUrl, publishers, scores: newest?.item_hash });
  const nodes = mergeNodes({ scheduled: scheduled.value?.nodes ?? [], ...scores.counting });
  const { found = [], fact, measuredAt = null } = proof.kind === 'proven' ? proof.value : {};
  const providers = byProvider(nodes, new Map(found.map((one) => [one.nodeId, one])));
  const failure = scheduled.failure ?? scores.failure;
  // Nodes would change their rows with what was measured: they are shown when that was looked at.
  const isWaiting =
    (scheduled.isKnown && isAsked(scheduled)) ||
    isAsked(scores) ||
    publishers === undefined ||
    proof.kind === 'waiting';
  return (
    <Panel
      title="Nodes by provider"
      wide
      aside={
        <Fact
          of="system"
          proof={
            fact ? { kind: 'proven', value: fact } : proof.kind === 'failed' ? proof : { kind: 'waiting' }
          }
        >
          where they are
        </Fact>
      }
    >
      {isWaiting ? (
        <Loading lines={3} />
      ) : providers.length === 0 && failure ? (
        <Failed failure={failure} />
      ) : providers.length === 0 ? (
        <Empty title="No node is known yet." />
      ) : (
        <>
          <SortTable
            label="nodes by provider"
            columns={COLUMNS}
            rows={providers.slice(0, PROVIDERS_MAX)}
            keyOf={({ key }) => key}
            first="provider"
          />
          {providers.length > PROVIDERS_MAX ? (
            <p class="muted">and {providers.length - PROVIDERS_MAX} more</p>
          ) : null}
        </>
      )}
      {/* What it says is the largest text of the page, and there before the nodes are. */}
      <Source measuredAt={measuredAt} />
    </Panel>
  );
}
