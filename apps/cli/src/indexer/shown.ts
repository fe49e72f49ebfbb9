import type { NetworkStatusView, NetworkView } from '@skerry/protocol/api/core/indexer';
import { plainText, renderFields, renderTime } from '../output/text.ts';

type Endpoint = NetworkStatusView['endpoints'][number];
type Table = (head: readonly string[], rows: readonly (readonly string[])[], empty: string) => string;

const shown = (value: number | null) => (value === null ? '-' : String(value));

/** What an operator looks up in docs/indexer.md is the code. */
const stateOf = ({ state, halt }: Pick<NetworkView, 'state' | 'halt'>) =>
  plainText(halt ? `${state} (${halt.code})` : state);

/** Since the process started that indexes the network. */
const failuresOf = ({ failures }: Endpoint) =>
  Object.entries(failures)
    .map(([kind, count]) => `${count} ${plainText(kind)}`)
    .join(', ');

const endpointRow = (one: Endpoint) => [
  plainText(one.name),
  shown(one.head),
  String(one.requests),
  failuresOf(one) || 'none',
  one.resting ? 'yes' : 'no',
];

export const renderNetworks = (networks: readonly NetworkView[], table: Table): string =>
  table(
    ['NETWORK', 'STATE', 'HEAD', 'INDEXED', 'LAG'],
    networks.map((one) => [
      plainText(one.network),
      stateOf(one),
      shown(one.head),
      shown(one.indexed),
      shown(one.lag),
    ]),
    'no chain is indexed',
  );

/** How far a network is, what is read of it, and from whom: what an endpoint does is why a network stalls. */
export function renderNetwork(one: NetworkStatusView, table: Table): string {
  const fields = renderFields([
    ['network', plainText(one.network)],
    ['state', one.halt ? `${stateOf(one)}: ${plainText(one.halt.message)}` : stateOf(one)],
    ['head', shown(one.head)],
    ['finalized', shown(one.finalized)],
    ['indexed', shown(one.indexed)],
    ['lag', shown(one.lag)],
    ['progress', renderTime(one.progress_at)],
    ['rpc calls', one.calls],
  ]);
  const contracts = one.contracts.map((contract) => [
    plainText(contract.contract),
    plainText(contract.kind),
    String(contract.from_block),
    contract.live ? 'live' : shown(contract.to_block),
  ]);
  const parts = [fields, table(['CONTRACT', 'KIND', 'FROM', 'TO'], contracts, 'no contracts')];
  // Another process of the core node asks them, or nobody does.
  if (one.endpoints.length > 0)
    parts.push(
      table(['ENDPOINT', 'HEAD', 'REQUESTS', 'FAILURES', 'AVOIDED'], one.endpoints.map(endpointRow), ''),
    );
  return parts.join('\n\n');
}
