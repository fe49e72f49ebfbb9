import type { ComponentChildren } from 'preact';
import {
  type Coverage,
  type Endpoint,
  type IndexedNetwork,
  readIndexedNetwork,
} from '../../data/answers-of-services.ts';
import { useCore } from '../../data/questions.ts';
import { Badge, Hash, Panel, Safe, Stat, Time } from '../../parts/basic.tsx';
import { block, ChainState } from '../../parts/chain-state.tsx';
import { Empty, Failed, Loaded } from '../../parts/states.tsx';
import { type Column, SortTable } from '../../parts/table.tsx';
import { count } from '../../pure/format.ts';
import { linkTo } from '../../pure/route.ts';
import { ChainQuery } from './chain-query.tsx';

const CONTRACTS: readonly Column<Coverage>[] = [
  {
    name: 'contract',
    title: 'Contract',
    sort: ({ contract }) => contract,
    cell: ({ contract }) => <Hash value={contract} />,
  },
  {
    name: 'kind',
    title: 'What',
    sort: ({ kind }) => kind,
    cell: ({ kind }) => <Safe text={kind} limit={32} />,
  },
  {
    name: 'from',
    title: 'From block',
    isNumber: true,
    sort: (row) => row.from_block,
    cell: (row) => block(row.from_block),
  },
  {
    name: 'to',
    title: 'To block',
    isNumber: true,
    sort: (row) => row.to_block,
    cell: (row) => block(row.to_block),
  },
  {
    name: 'live',
    title: 'State',
    sort: ({ live }) => live,
    cell: ({ live }) => <Badge tone={live ? 'good' : 'warn'}>{live ? 'keeps up' : 'catching up'}</Badge>,
  },
];

const failuresOf = ({ failures }: Endpoint) => Object.values(failures).reduce((sum, one) => sum + one, 0);

const ENDPOINTS: readonly Column<Endpoint>[] = [
  {
    name: 'name',
    title: 'Endpoint',
    sort: ({ name }) => name,
    cell: ({ name }) => <Safe text={name} limit={80} />,
  },
  {
    name: 'head',
    title: 'Newest block',
    isNumber: true,
    sort: ({ head }) => head,
    cell: ({ head }) => block(head),
  },
  {
    name: 'calls',
    title: 'Calls',
    isNumber: true,
    sort: ({ calls }) => calls,
    cell: ({ calls }) => count(calls),
  },
  {
    name: 'failures',
    title: 'Failures',
    isNumber: true,
    sort: failuresOf,
    cell: (row) => (
      <span class="stack">
        {count(failuresOf(row))}
        {Object.entries(row.failures).map(([kind, many]) =>
          many === 0 ? null : (
            <span key={kind} class="muted">
              <Safe text={kind} limit={32} /> {count(many)}
            </span>
          ),
        )}
      </span>
    ),
  },
  {
    name: 'state',
    title: 'State',
    sort: ({ resting }) => resting,
    cell: ({ resting }) => <Badge tone={resting ? 'warn' : 'good'}>{resting ? 'avoided' : 'asked'}</Badge>,
  },
];

const Part = (props: {
  readonly title: string;
  readonly isEmpty: boolean;
  readonly why: string;
  readonly children: ComponentChildren;
}) => <Panel title={props.title}>{props.isEmpty ? <Empty title={props.why} /> : props.children}</Panel>;

const Progress = ({ chain }: { readonly chain: IndexedNetwork }) => (
  <div class="stats">
    <Stat label="State" value={<ChainState state={chain.state} />} note={`chain ${chain.chain_id}`} />
    <Stat label="Indexed to" value={block(chain.indexed)} note={`of ${block(chain.head)}`} />
    <Stat
      label="Behind"
      value={block(chain.lag)}
      note={
        <>
          progress <Time ms={chain.progress_at * 1_000} />
        </>
      }
    />
    <Stat label="Final to" value={block(chain.finalized)} note={`${count(chain.calls)} calls to endpoints`} />
  </div>
);

/** One chain: how far it is indexed, by which contracts and endpoints, and what is asked of it. */
export function IndexedChain({ network }: { readonly network: string }) {
  const chain = useCore(`/api/v0/indexer/${encodeURIComponent(network)}`, readIndexedNetwork);
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['indexer'])}>Indexer</a>
      </p>
      <h1>
        <Safe text={network} limit={64} />
      </h1>
      <Loaded from={chain} lines={5}>
        {(known) => (
          <>
            {known.halt === null ? null : <Failed failure={known.halt} />}
            <Progress chain={known} />
            <div class="panels">
              <ChainQuery network={network} contracts={known.contracts} />
              <Part
                title="Contracts"
                isEmpty={known.contracts.length === 0}
                why="Nobody asked for a contract."
              >
                <SortTable
                  label="contracts"
                  columns={CONTRACTS}
                  rows={known.contracts}
                  keyOf={({ contract, kind }) => `${contract} ${kind}`}
                  first="contract"
                />
              </Part>
              <Part
                title="Endpoints"
                isEmpty={known.endpoints.length === 0}
                why="Another process of this core node indexes the chain."
              >
                <SortTable
                  label="endpoints"
                  columns={ENDPOINTS}
                  rows={known.endpoints}
                  keyOf={({ name }) => name}
                  first="name"
                />
              </Part>
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}
