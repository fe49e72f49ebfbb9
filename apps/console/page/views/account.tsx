import { costIn, showCredits, showDollars } from '@skerry/protocol/credit/shown';
import {
  type Account,
  type Cost,
  type HistoryLine,
  type Purchase,
  readAccount,
  readCosts,
  readHistory,
  readPurchases,
  usedOf,
} from '../data/answers-of-services.ts';
import { now } from '../data/clock.ts';
import { machineLink, messageLink, useNetwork } from '../data/network.ts';
import { type Told, useCore, useService } from '../data/questions.ts';
import { Badge, DateTime, Hash, Panel, ProofMark, Safe, Stat, Time } from '../parts/basic.tsx';
import { Chart } from '../parts/chart.tsx';
import { Empty, Loaded, Loading } from '../parts/states.tsx';
import { type Column, SortTable } from '../parts/table.tsx';
import { balanceOver, lastingOf, whenUsedUp } from '../pure/credits.ts';
import { count } from '../pure/format.ts';
import { linkTo } from '../pure/route.ts';
import { AddUp } from './add-up.tsx';

const SELDOM_MS = 30_000;
const LINES_SHOWN = 200;
const COSTS_SHOWN = 200;
const NANO = 1_000_000_000n;

/** What credit publishers announced of it. */
const Announced = ({ state }: { readonly state: string | null }) =>
  state === null || state === 'ok' ? null : (
    <Badge tone={state === 'exhausted' ? 'bad' : 'warn'}>{state === 'exhausted' ? 'used up' : 'low'}</Badge>
  );

function LastsStat({ account }: { readonly account: Account }) {
  const { info } = useNetwork();
  const lasting = lastingOf(account, now.value);
  const state = <Announced state={account.credit_state} />;
  if (lasting.kind === 'free')
    return <Stat label="Lasts until" value="–" note={<>nothing costs anything {state}</>} />;
  if (lasting.kind === 'until')
    return (
      <Stat
        label="Lasts until"
        value={<Time ms={lasting.ms} />}
        note={
          <>
            <DateTime ms={lasting.ms} /> {state}
          </>
        }
      />
    );
  return (
    <Stat
      label="Lasts until"
      value="used up"
      note={
        <>
          {whenUsedUp(info?.trust.credit_enforcement.value)} {state}
        </>
      }
    />
  );
}

function Stats({ account }: { readonly account: Account }) {
  const { credit_balance_nano: balance, credit_rate_nano: rate } = account;
  const day = costIn('day', rate);
  return (
    <div class="stats">
      <Stat label="Credits" value={showCredits(balance)} note={showDollars(balance)} />
      <Stat label="A day costs" value={showCredits(day)} note={`${showDollars(day)}, held back`} />
      <Stat
        label="Free to use"
        value={count(account.credit_available)}
        note={showDollars(BigInt(Math.trunc(account.credit_available)) * NANO)}
      />
      <LastsStat account={account} />
    </div>
  );
}

const KINDS: Readonly<Record<string, string>> = { instance: 'machine', program: 'program', storage: 'file' };

const COSTS: readonly Column<Cost>[] = [
  {
    name: 'what',
    title: 'What',
    sort: ({ item_hash: hash }) => hash,
    cell: ({ item_hash: hash, type }) => (
      <Hash value={hash} href={type === 'instance' ? machineLink(hash) : messageLink(hash)} />
    ),
  },
  { name: 'kind', title: 'Kind', sort: ({ type }) => type, cell: ({ type }) => KINDS[type] ?? type },
  {
    name: 'rate',
    title: 'A day costs',
    isNumber: true,
    sort: ({ cost_credit_nano: nano }) => Number(nano),
    cell: ({ cost_credit_nano: nano }) => showCredits(costIn('day', nano)),
  },
  {
    name: 'used',
    title: 'Used so far',
    isNumber: true,
    sort: (cost) => Number(usedOf(cost)),
    cell: (cost) => showCredits(usedOf(cost)),
  },
  {
    name: 'size',
    title: 'Counted as',
    cell: ({ compute_units: units, size_mib: mib }) =>
      [units > 0 ? `${units} ${units === 1 ? 'unit' : 'units'}` : '', mib > 0 ? `${count(mib)} MiB` : '']
        .filter(Boolean)
        .join(', '),
  },
  {
    name: 'since',
    title: 'Since',
    sort: ({ created }) => -created,
    cell: ({ created }) => <Time ms={created * 1_000} />,
  },
];

function Costs({ address }: { readonly address: string }) {
  const costs = useCore(
    `/api/v0/costs?address=${encodeURIComponent(address)}&include_details=1&pagination=${COSTS_SHOWN}`,
    readCosts,
    SELDOM_MS,
  );
  return (
    <Panel title="What costs what" wide>
      <Loaded from={costs} lines={4}>
        {({ resources, summary }) =>
          !resources?.length ? (
            <Empty title="It has nothing that costs anything." />
          ) : (
            <>
              <SortTable
                label="costs"
                columns={COSTS}
                rows={resources}
                keyOf={(row) => row.item_hash}
                first="since"
              />
              {summary.resource_count > resources.length ? (
                <p class="muted">
                  The newest {resources.length} of {count(summary.resource_count)} are shown.
                </p>
              ) : null}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

const Period = ({ line: { start_date: from, end_date: to } }: { readonly line: HistoryLine }) =>
  from === null || to === null ? (
    <>–</>
  ) : (
    <span class="stack">
      <DateTime ms={from * 1_000} />
      <span class="muted">
        to <DateTime ms={to * 1_000} />
      </span>
    </span>
  );

const HISTORY: readonly Column<HistoryLine>[] = [
  {
    name: 'when',
    title: 'When',
    cell: ({ message_timestamp: time, credit_ref: hash }) => (
      <a href={messageLink(hash)}>
        <Time ms={time * 1_000} />
      </a>
    ),
  },
  {
    name: 'what',
    title: 'What',
    cell: ({ kind }) => (
      <Badge tone={kind === 'purchase' ? 'good' : 'plain'}>{kind === 'purchase' ? 'bought' : 'used'}</Badge>
    ),
  },
  { name: 'amount', title: 'Credits', isNumber: true, cell: ({ amount_nano: nano }) => showCredits(nano) },
  {
    name: 'for',
    title: 'For',
    cell: ({ origin_ref: ref, kind }) =>
      kind === 'expense' ? <Hash value={ref} href={messageLink(ref)} /> : <Safe text={ref} limit={80} />,
  },
  { name: 'period', title: 'Period', cell: (line) => <Period line={line} /> },
];

interface AccountHistory {
  readonly account: Account;
  readonly lines: readonly HistoryLine[];
}

function Balance({ account, lines }: AccountHistory) {
  const known = lines.map((line) => ({ nano: line.amount_nano, time: line.message_timestamp }));
  const points = balanceOver(account.credit_balance_nano, account.time * 1_000, known);
  return (
    <Panel title="Balance over time" wide>
      {points.length < 2 ? (
        <Empty title="Nothing was bought or used yet." />
      ) : (
        <Chart
          label="credits that were left"
          series={[{ name: 'credits', tone: 'accent', points }]}
          format={(value) => showCredits(BigInt(Math.round(value * 1e6)) * 1_000n)}
        />
      )}
    </Panel>
  );
}

interface HistoryProps {
  readonly lines: readonly HistoryLine[];
  readonly total: number;
  readonly source: string | undefined;
}

const History = ({ lines, total, source }: HistoryProps) => (
  <Panel
    title="Bought and used"
    wide
    aside={
      <ProofMark kind="said" of="coreWord" source={source} label="each line names the message that says so" />
    }
  >
    {lines.length === 0 ? (
      <Empty title="Nothing yet." />
    ) : (
      <>
        <SortTable
          label="history"
          columns={HISTORY}
          rows={lines}
          keyOf={({ credit_ref: hash, credit_index: at }) => `${hash}/${at}`}
          first="when"
        />
        {total > lines.length ? (
          <p class="muted">
            The newest {lines.length} of {count(total)} are shown.
          </p>
        ) : null}
      </>
    )}
  </Panel>
);

const PURCHASE_TONES: Readonly<Record<string, 'good' | 'warn' | 'bad'>> = {
  COMPLETED: 'good',
  FAILED: 'bad',
  CANCELLED: 'bad',
};

/** Transfers of tokens on their way to become credits. */
function Purchases({ from }: { readonly from: Told<{ readonly data: readonly Purchase[] } | undefined> }) {
  const rows = from.value?.data ?? [];
  return rows.length === 0 ? null : (
    <Panel
      title="Transfers"
      wide
      aside={<ProofMark kind="said" of="creditWord" source={from.source} label="the credit service's word" />}
    >
      <ul class="lines">
        {rows.map((row) => (
          <li key={row.id}>
            <Badge tone={PURCHASE_TONES[row.status] ?? 'warn'}>{row.status.toLowerCase()}</Badge>
            <span>{count(row.prices.credit_amount)} credits</span>
            <span class="muted">
              <Safe text={`${row.in_currency} on ${row.chain}`} limit={48} />
            </span>
            <Hash
              value={row.tx_hash}
              {...(row.item_hash === null ? {} : { href: messageLink(row.item_hash) })}
            />
            {row.reason === null ? null : <Safe text={row.reason} />}
            <span class="muted">
              <Time ms={row.created_at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** One account: what it has, what it costs, until when. */
export function AccountPage({ address }: { readonly address: string }) {
  const path = `/api/v0/addresses/${encodeURIComponent(address)}`;
  const account = useCore(`${path}/balance`, readAccount);
  const history = useCore(`${path}/credit_history?pagination=${LINES_SHOWN}`, readHistory);
  const purchases = useService(
    'credit',
    `/api/v0/payment?address=${encodeURIComponent(address)}&limit=20`,
    readPurchases,
    SELDOM_MS,
  );
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['credits'])}>Credits</a>
      </p>
      <h1 class="title">
        Account <Hash value={address} />
      </h1>
      <Loaded from={account} lines={6}>
        {(known) => (
          <>
            <Stats account={known} />
            <div class="panels">
              {history.value ? (
                <Balance account={known} lines={history.value.credit_history} />
              ) : (
                <Panel title="Balance over time" wide>
                  <Loading lines={5} />
                </Panel>
              )}
              <Costs address={address} />
              <AddUp address={address} />
              <Purchases from={purchases} />
              <Loaded from={history}>
                {({ credit_history: lines, pagination }) => (
                  <History lines={lines} total={pagination.total} source={history.source} />
                )}
              </Loaded>
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}
