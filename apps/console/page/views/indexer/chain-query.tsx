import {
  type ChainEvent,
  type ChainTransaction,
  type Coverage,
  readChainEvents,
  readChainTransactions,
} from '../../data/answers-of-services.ts';
import { useNetwork } from '../../data/network.ts';
import { route } from '../../data/place.ts';
import { useCore } from '../../data/questions.ts';
import { DateTime, Hash, Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Field, Form, type Typed } from '../../parts/form.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { type Column, SortTable } from '../../parts/table.tsx';
import { coins, count } from '../../pure/format.ts';
import { chainQueryOf } from '../../pure/queries/chain-query.ts';
import { linkTo } from '../../pure/route.ts';

const ARGS_CHARS = 600;

const EVENTS: readonly Column<ChainEvent>[] = [
  { name: 'block', title: 'Block', isNumber: true, cell: (row) => count(row.block_number) },
  { name: 'when', title: 'When', cell: (row) => <DateTime ms={row.timestamp * 1_000} /> },
  { name: 'contract', title: 'Contract', cell: (row) => <Hash value={row.contract} /> },
  {
    name: 'event',
    title: 'Event',
    cell: (row) =>
      row.event_name === '' ? (
        <span class="muted">not declared</span>
      ) : (
        <Safe text={row.event_name} limit={80} />
      ),
  },
  {
    name: 'args',
    title: 'Arguments',
    cell: (row) => (
      <ul class="arguments">
        {Object.entries(row.args).map(([name, value]) => (
          <li key={name}>
            <span class="muted">
              <Safe text={name} limit={48} />
            </span>{' '}
            <code>
              <Safe text={typeof value === 'string' ? value : JSON.stringify(value)} limit={ARGS_CHARS} />
            </code>
          </li>
        ))}
      </ul>
    ),
  },
  { name: 'hash', title: 'Transaction', cell: (row) => <Hash value={row.transaction_hash} /> },
];

const TRANSACTIONS: readonly Column<ChainTransaction>[] = [
  { name: 'block', title: 'Block', isNumber: true, cell: (row) => count(row.block_number) },
  { name: 'when', title: 'When', cell: (row) => <DateTime ms={row.timestamp * 1_000} /> },
  { name: 'from', title: 'From', cell: (row) => <Hash value={row.from} /> },
  { name: 'to', title: 'To', cell: (row) => (row.to === null ? 'a new contract' : <Hash value={row.to} />) },
  { name: 'value', title: 'Value', isNumber: true, cell: (row) => coins(row.value) },
  { name: 'hash', title: 'Transaction', cell: (row) => <Hash value={row.hash} /> },
];

interface Rows<T> {
  readonly rows: readonly T[];
  readonly total: number;
  readonly isExact: boolean;
  readonly cursor: string | null;
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  readonly isCovered: boolean;
}

function Found<T>({ rows, total, isExact, cursor, columns, keyOf, isCovered }: Rows<T>) {
  const { parts, query } = route.value;
  if (rows.length === 0)
    return (
      <Empty title="Nothing was found.">
        {isCovered ? null : (
          <p class="muted">Nobody asked for this contract: an empty list says nothing about the chain.</p>
        )}
      </Empty>
    );
  return (
    <>
      <SortTable label="found" columns={columns} rows={rows} keyOf={keyOf} first="" />
      <p class="actions">
        <span class="muted">
          {rows.length} of {isExact ? '' : 'at least '}
          {count(total)}
        </span>
        {query.cursor ? <a href={linkTo(parts, { ...query, cursor: undefined })}>newest</a> : null}
        {cursor === null ? null : <a href={linkTo(parts, { ...query, cursor })}>older</a>}
      </p>
    </>
  );
}

function Events({ path }: { readonly path: string }) {
  const found = useCore(path, readChainEvents);
  return (
    <Loaded from={found} lines={4}>
      {({ events, pagination, cursor, coverage }) => (
        <Found
          rows={events}
          total={pagination.total}
          isExact={pagination.total_is_exact}
          cursor={cursor}
          columns={EVENTS}
          keyOf={(row) => `${row.transaction_hash} ${row.log_index}`}
          isCovered={coverage.length > 0 || !path.includes('contract=')}
        />
      )}
    </Loaded>
  );
}

function Transactions({ path }: { readonly path: string }) {
  const found = useCore(path, readChainTransactions);
  return (
    <Loaded from={found} lines={4}>
      {({ transactions, pagination, cursor }) => (
        <Found
          rows={transactions}
          total={pagination.total}
          isExact={pagination.total_is_exact}
          cursor={cursor}
          columns={TRANSACTIONS}
          keyOf={({ hash }) => hash}
          isCovered
        />
      )}
    </Loaded>
  );
}

/** Events and transactions of a chain. What is asked stands in the address. */
export function ChainQuery({
  network,
  contracts,
}: {
  readonly network: string;
  readonly contracts: readonly Coverage[];
}) {
  const { coreUrl } = useNetwork();
  const { parts, query } = route.value;
  const isEvents = query.what !== 'transactions';
  const base = `/api/v0/indexer/${encodeURIComponent(network)}`;
  const path = `${base}/${isEvents ? 'events' : 'transactions'}?${new URLSearchParams(chainQueryOf(query))}`;
  const search = (typed: Typed) => {
    location.hash = linkTo(parts, typed);
  };
  return (
    <Panel
      title="Ask"
      wide
      aside={
        <ProofMark
          kind="said"
          of="chainWord"
          source={`${coreUrl}${path}`}
          label="the core node's word, as its endpoints gave it"
        />
      }
    >
      <Form key={JSON.stringify(query)} label="query" button="Search" onSend={search}>
        <label class="number-field">
          What
          <select name="what" defaultValue={isEvents ? 'events' : 'transactions'}>
            <option value="events">events</option>
            <option value="transactions">transactions</option>
          </select>
        </label>
        <Field
          name="contract"
          label="Contract, or an address"
          value={query.contract}
          placeholder={contracts[0]?.contract ?? '0x…'}
          limit={64}
        />
        <Field name="event_name" label="Event" value={query.event_name} placeholder="Transfer" limit={256} />
        <Field
          name="args"
          label="Arguments, as JSON"
          value={query.args}
          placeholder={'{"from": "0x…"}'}
          limit={2_048}
        />
        <Field name="from_block" label="From block" value={query.from_block} isNumber />
        <Field name="to_block" label="To block" value={query.to_block} isNumber />
      </Form>
      {isEvents ? <Events key={path} path={path} /> : <Transactions key={path} path={path} />}
    </Panel>
  );
}
