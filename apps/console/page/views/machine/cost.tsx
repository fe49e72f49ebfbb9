import { costIn, showCredits, showDollars } from '@skerry/protocol/credit/shown';
import type { ComponentChildren } from 'preact';
import type { Instance } from '../../data/answers.ts';
import {
  type Cost,
  type HistoryLine,
  readAccount,
  readCosts,
  readHistory,
  usedOf,
} from '../../data/answers-of-services.ts';
import { now } from '../../data/clock.ts';
import { useNetwork } from '../../data/network.ts';
import { useCore } from '../../data/questions.ts';
import { Badge, DateTime, Facts, Panel, ProofMark, Time } from '../../parts/basic.tsx';
import { Chart } from '../../parts/chart.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { lastingOf, usedOver, whenUsedUp } from '../../pure/credits.ts';
import { count } from '../../pure/format.ts';
import { linkTo } from '../../pure/route.ts';

const SELDOM_MS = 30_000;
/** Credit that lasts for less is worth a warning: a payment takes a while, and an owner is not always there. */
const SOON_MS = 7 * 86_400_000;
/** Charges that the chart is drawn from. */
const LINES_SHOWN = 200;

const withDollars = (nano: bigint) => `${showCredits(nano)} (${showDollars(nano)})`;

/** Until when the owner's credit lasts, with all that they have: a row of facts, since what is over is not promised. */
function usePaid(owner: string): readonly [string, ComponentChildren] {
  const account = useCore(`/api/v0/addresses/${encodeURIComponent(owner)}/balance`, readAccount, SELDOM_MS);
  const { info } = useNetwork();
  if (!account.value) return ['paid for until', '…'];
  const balance = account.value.credit_balance_nano;
  const lasting = lastingOf(account.value, now.value);
  const link = (text: ComponentChildren) => <a href={linkTo(['credits', owner])}>{text}</a>;
  if (lasting.kind === 'free') return ['paid for until', link(`its owner has ${showCredits(balance)}`)];
  if (lasting.kind === 'used-up') {
    const then = whenUsedUp(info?.trust.credit_enforcement.value);
    return ['not paid for', link(`its owner has ${showCredits(balance)}: ${then}`)];
  }
  const until = (
    <>
      <DateTime ms={lasting.ms} />, <Time ms={lasting.ms} />{' '}
      {lasting.ms - now.value < SOON_MS ? <Badge tone="warn">soon</Badge> : null}
    </>
  );
  return ['paid for until', link(until)];
}

function Rows({ cost, machine }: { readonly cost: Cost; readonly machine: Instance }) {
  const paid = usePaid(machine.owner);
  const nano = cost.cost_credit_nano;
  return (
    <Facts
      rows={[
        ['so far', withDollars(usedOf(cost))],
        ['an hour', withDollars(costIn('hour', nano))],
        ['a day', withDollars(costIn('day', nano))],
        ['30 days', withDollars(costIn('month', nano))],
        ['counted as', `${count(cost.compute_units)} ${cost.compute_units === 1 ? 'unit' : 'units'}`],
        ['since', <DateTime ms={cost.created * 1_000} />],
        paid,
      ]}
    />
  );
}

interface UsedProps {
  readonly lines: readonly HistoryLine[];
  readonly nowMs: number;
  /** In all, where there are older lines. */
  readonly usedNano: bigint | undefined;
}

const Used = ({ lines, nowMs, usedNano }: UsedProps) =>
  lines.length < 2 ? null : (
    <Chart
      label="credits that it has used, charge by charge"
      series={[
        {
          name: 'used',
          tone: 'accent',
          points: usedOver(
            nowMs,
            lines.map((line) => ({ nano: line.amount_nano, time: line.message_timestamp })),
            usedNano,
          ),
        },
      ]}
      format={(value) => showCredits(BigInt(Math.round(value * 1e6)) * 1_000n)}
    />
  );

/** What a machine costs: so far, a day, a month, and until when it is paid for. */
export function MachineCost({ machine }: { readonly machine: Instance }) {
  const { instance_id: id, owner } = machine;
  const costs = useCore(`/api/v0/costs?item_hash=${id}&include_details=1`, readCosts, SELDOM_MS);
  const history = useCore(
    `/api/v0/addresses/${encodeURIComponent(owner)}/credit_history?kind=expense&ref=${id}&pagination=${LINES_SHOWN}`,
    readHistory,
    SELDOM_MS,
  );
  const [known] = costs.value?.resources ?? [];
  const usedNano = known && usedOf(known);
  return (
    <Panel
      title="What it costs, in credits"
      aside={<ProofMark kind="said" of="price" source={costs.source} label="core node" />}
    >
      <Loaded from={costs} lines={5}>
        {({ resources }) => {
          const [cost] = resources ?? [];
          return cost ? <Rows cost={cost} machine={machine} /> : <Empty title="It costs nothing now." />;
        }}
      </Loaded>
      {history.value ? (
        <Used
          lines={history.value.credit_history}
          nowMs={history.atMs ?? 0}
          usedNano={history.value.pagination.total > LINES_SHOWN ? usedNano : undefined}
        />
      ) : null}
    </Panel>
  );
}
