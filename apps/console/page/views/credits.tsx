import { MIB_PER_GIB } from '@skerry/protocol/content/sizes';
import { costIn, priceIn, showCredits, showDollars } from '@skerry/protocol/credit/shown';
import { type Account, readAccounts, readPrices } from '../data/answers-of-services.ts';
import { now } from '../data/clock.ts';
import { useCore, useHeavy } from '../data/questions.ts';
import { Badge, Facts, Hash, Panel, Time } from '../parts/basic.tsx';
import { Field, Form } from '../parts/form.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, SortTable } from '../parts/table.tsx';
import { lastingOf } from '../pure/credits.ts';
import { linkTo } from '../pure/route.ts';
import { AccountPage } from './account.tsx';

const SELDOM_MS = 30_000;
const ACCOUNTS_SHOWN = 100;

function CreditState({ account }: { readonly account: Account }) {
  const { credit_state: state, credit_rate_nano: rate, credit_balance_nano: balance } = account;
  if (state === 'exhausted') return <Badge tone="bad">used up</Badge>;
  if (balance < 0n) return <Badge tone="bad">below zero</Badge>;
  if (state === 'low') return <Badge tone="warn">low</Badge>;
  return <Badge tone={rate === 0n ? 'plain' : 'good'}>{rate === 0n ? 'costs nothing' : 'enough'}</Badge>;
}

function Lasts({ account }: { readonly account: Account }) {
  const lasting = lastingOf(account, now.value);
  if (lasting.kind === 'until') return <Time ms={lasting.ms} />;
  return <>{lasting.kind === 'free' ? '–' : 'nothing is left'}</>;
}

const COLUMNS: readonly Column<Account>[] = [
  {
    name: 'address',
    title: 'Account',
    sort: ({ address }) => address,
    cell: ({ address }) => <Hash value={address} href={linkTo(['credits', address])} />,
  },
  {
    name: 'balance',
    title: 'Credits',
    isNumber: true,
    sort: (row) => Number(row.credit_balance_nano),
    cell: (row) => showCredits(row.credit_balance_nano),
  },
  {
    name: 'rate',
    title: 'A day costs',
    isNumber: true,
    sort: (row) => Number(row.credit_rate_nano),
    cell: (row) => showCredits(costIn('day', row.credit_rate_nano)),
  },
  {
    name: 'until',
    title: 'Lasts until',
    sort: (row) => row.runs_out_at ?? Number.POSITIVE_INFINITY,
    cell: (row) => <Lasts account={row} />,
  },
  {
    name: 'state',
    title: 'State',
    sort: (row) => row.credit_state,
    cell: (account) => <CreditState account={account} />,
  },
];

const Money = ({ nano, per }: { readonly nano: bigint; readonly per: string }) => (
  <>
    {showCredits(nano)} credits <span class="muted">({showDollars(nano)})</span> {per}
  </>
);

function Prices() {
  const prices = useCore('/api/v0/credits/prices', readPrices, SELDOM_MS);
  return (
    <Panel title="What things cost">
      <Loaded from={prices}>
        {({ prices: { instance, program, storage } }) => (
          <Facts
            rows={[
              ...(instance
                ? [
                    [
                      'machine',
                      <Money nano={priceIn('hour', instance.compute_unit)} per="a compute unit and hour" />,
                    ] as const,
                    [
                      'more disk',
                      <Money
                        nano={priceIn('month', instance.storage_mib, MIB_PER_GIB)}
                        per="a GiB and month"
                      />,
                    ] as const,
                  ]
                : []),
              ...(program
                ? [
                    [
                      'program',
                      <Money nano={priceIn('hour', program.compute_unit)} per="a compute unit and hour" />,
                    ] as const,
                  ]
                : []),
              ...(storage
                ? [
                    [
                      'file',
                      <Money
                        nano={priceIn('month', storage.storage_mib, MIB_PER_GIB)}
                        per="a GiB and month"
                      />,
                    ] as const,
                  ]
                : []),
            ]}
          />
        )}
      </Loaded>
      <p class="muted">
        A compute unit is 1 core, 2 GiB of memory and 20 GiB of disk. These are the prices of what is made
        now; what is there already keeps its own. A million credits are a dollar.
      </p>
    </Panel>
  );
}

function Accounts() {
  const accounts = useHeavy(`/api/v0/credits/accounts?limit=${ACCOUNTS_SHOWN}`, readAccounts);
  return (
    <>
      <h1>Credits</h1>
      <div class="panels">
        <Panel title="Look at an account">
          <Form
            label="account"
            button="Show"
            onSend={({ address = '' }) => {
              location.hash = linkTo(['credits', address.trim()]);
            }}
          >
            <Field name="address" label="Address" placeholder="0x…" isRequired isWide limit={128} />
          </Form>
        </Panel>
        <Prices />
        <Panel title="Accounts" wide>
          <Loaded from={accounts} lines={5}>
            {({ accounts: rows }) =>
              rows.length === 0 ? (
                <Empty title="Nobody has credits, and nothing costs any." />
              ) : (
                <>
                  <SortTable
                    label="accounts"
                    columns={COLUMNS}
                    rows={rows}
                    keyOf={({ address }) => address}
                    first="address"
                  />
                  {rows.length === ACCOUNTS_SHOWN ? (
                    <p class="muted">The first {ACCOUNTS_SHOWN}, by address, are shown.</p>
                  ) : null}
                </>
              )
            }
          </Loaded>
        </Panel>
      </div>
    </>
  );
}

/** What is owned and owed. @param address whose; undefined: everybody's */
export const Credits = ({ address }: { readonly address: string | undefined }) =>
  address === undefined ? <Accounts /> : <AccountPage key={address} address={address} />;
