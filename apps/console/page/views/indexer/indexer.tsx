import { type IndexedNetwork, readIndexedNetworks } from '../../data/answers-of-services.ts';
import { useCore } from '../../data/questions.ts';
import { Panel, Safe, Time } from '../../parts/basic.tsx';
import { block, ChainState } from '../../parts/chain-state.tsx';
import { Command } from '../../parts/command.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { type Column, SortTable } from '../../parts/table.tsx';
import { linkTo } from '../../pure/route.ts';
import { IndexedChain } from './indexed-chain.tsx';

const COLUMNS: readonly Column<IndexedNetwork>[] = [
  {
    name: 'network',
    title: 'Chain',
    sort: ({ network }) => network,
    cell: ({ network }) => (
      <a href={linkTo(['indexer', network])}>
        <Safe text={network} limit={64} />
      </a>
    ),
  },
  { name: 'id', title: 'Id', isNumber: true, sort: ({ chain_id: id }) => id, cell: ({ chain_id: id }) => id },
  {
    name: 'state',
    title: 'State',
    sort: ({ state }) => state,
    cell: ({ state, halt }) => (
      <span class="stack">
        <ChainState state={state} />
        {halt === null ? null : (
          <span class="wrong">
            <Safe text={halt.message} /> <code>{halt.code}</code>
          </span>
        )}
      </span>
    ),
  },
  {
    name: 'indexed',
    title: 'Indexed to',
    isNumber: true,
    sort: ({ indexed }) => indexed,
    cell: ({ indexed }) => block(indexed),
  },
  {
    name: 'head',
    title: 'Newest block',
    isNumber: true,
    sort: ({ head }) => head,
    cell: ({ head }) => block(head),
  },
  { name: 'lag', title: 'Behind', isNumber: true, sort: ({ lag }) => lag, cell: ({ lag }) => block(lag) },
  {
    name: 'progress',
    title: 'Progress',
    sort: ({ progress_at: at }) => -at,
    cell: ({ progress_at: at }) => <Time ms={at * 1_000} />,
  },
];

function Chains() {
  const networks = useCore('/api/v0/indexer', readIndexedNetworks);
  return (
    <>
      <h1>Indexer</h1>
      <Panel title="Chains that this core node indexes" wide>
        <Loaded from={networks} lines={4}>
          {({ networks: rows }) =>
            rows.length === 0 ? (
              <Empty title="This core node indexes no chain.">
                <p class="muted">
                  Its operator names chains in a file: <code>SKERRY_CORE_INDEXER_FILE</code>.
                </p>
              </Empty>
            ) : (
              <SortTable
                label="chains"
                columns={COLUMNS}
                rows={rows}
                keyOf={({ network }) => network}
                first="network"
              />
            )
          }
        </Loaded>
      </Panel>
      <Panel title="Have a contract indexed" wide>
        <p class="prose muted">
          Anybody can ask for a contract with a signed message. An ABI lists its events.
        </p>
        <Command text="skerry indexer add NETWORK CONTRACT --abi @abi.json" />
      </Panel>
    </>
  );
}

/** Indexed chains, or one of them and what is asked of it. */
export const Indexer = ({ network }: { readonly network: string | undefined }) =>
  network === undefined ? <Chains /> : <IndexedChain key={network} network={network} />;
