import { useState } from 'preact/hooks';
import { useAction } from '../data/action.ts';
import { readMeasuredHistory, readPeers, readUptimeDays } from '../data/answers-of-services.ts';
import { useNetwork } from '../data/network.ts';
import type { Proof } from '../data/prove.ts';
import { useCore, useService, useServiceOf } from '../data/questions.ts';
import { verify } from '../data/workers.ts';
import { Bars } from '../parts/bars.tsx';
import { Badge, DateTime, Panel, ProofMark, Safe, Time, type Tone } from '../parts/basic.tsx';
import { Fact } from '../parts/fact.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { count } from '../pure/format.ts';
import { barsOf, versionRuns } from '../pure/uptime.ts';
import type { JudgedFact } from '../workers/facts.ts';

const SELDOM_MS = 60_000;
const DAY_SECONDS = 86_400;
/** As many bars as fit on a phone. */
const BARS = 90;
const VERSIONS_SHOWN = 20;

const STEPS = {
  day: { step: DAY_SECONDS, title: 'by day', next: 'hour' },
  hour: { step: 3_600, title: 'by hour', next: 'minute' },
  minute: { step: 60, title: 'by minute', next: 'day' },
} as const;

interface NodeProps {
  readonly nodeId: string;
  readonly kind: 'core' | 'compute';
}

const useHistory = ({ nodeId, kind }: NodeProps, step: number) =>
  useCore(
    `/api/v0/${kind}/${encodeURIComponent(nodeId)}/metrics/history?step=${step}&count=${BARS}`,
    readMeasuredHistory,
    SELDOM_MS,
    [404],
  );

/** What the status service saw, day by day. */
function Checked({ id }: { readonly id: number }) {
  const days = useService('status', `/api/services/${id}/uptime_days`, readUptimeDays, SELDOM_MS);
  if (!days.value?.length) return null;
  const newest = Date.parse(days.value.at(-1)!.date) / 1_000;
  const parts = days.value.map(({ date, hits, failures }) => ({
    start: Date.parse(date) / 1_000,
    measurements: hits,
    answered: hits - failures,
  }));
  const frame = { from: newest - (BARS - 1) * DAY_SECONDS, step: DAY_SECONDS, count: BARS };
  return <Bars label="Checks of the status service, by day:" bars={barsOf(parts, frame)} />;
}

/** How often it answered whoever looked. */
function Uptime(node: NodeProps) {
  const [unit, setUnit] = useState<keyof typeof STEPS>('day');
  const { step, title, next } = STEPS[unit];
  const history = useHistory(node, step);
  const checked = useServiceOf(node.kind, node.nodeId).value?.[0];
  return (
    <Panel
      title="Uptime"
      aside={
        <button type="button" class="plain small" onClick={() => setUnit(next)}>
          {`show ${STEPS[next].title}`}
        </button>
      }
    >
      <Loaded from={history} lines={4}>
        {({ from, history: parts }) =>
          parts === null || from === null ? (
            <Empty title={`Nobody measured it in the last ${BARS} ${unit}s.`} />
          ) : (
            <Bars
              label={`Measurements of monitors, ${title}:`}
              bars={barsOf(parts, { from, step, count: BARS })}
            />
          )
        }
      </Loaded>
      {checked ? <Checked id={checked.id} /> : null}
    </Panel>
  );
}

function Versions(node: NodeProps) {
  const history = useHistory(node, DAY_SECONDS);
  return (
    <Panel
      title="Versions"
      aside={<ProofMark kind="said" of="monitorWord" source={history.source} label="as monitors heard" />}
    >
      <Loaded from={history} lines={2}>
        {({ history: parts }) => {
          const runs = versionRuns(parts ?? [], DAY_SECONDS).slice(0, VERSIONS_SHOWN);
          return runs.length === 0 ? (
            <Empty title="It told none." />
          ) : (
            <ul class="lines">
              {runs.map(({ version, fromMs, toMs }) => (
                <li key={`${version} ${fromMs}`}>
                  <b class="grow">
                    <Safe text={version} limit={64} />
                  </b>
                  <span class="muted">
                    <DateTime ms={fromMs} /> to {toMs >= (history.atMs ?? 0) ? 'now' : <DateTime ms={toMs} />}
                  </span>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Panel>
  );
}

const PEER_TONES: Readonly<Record<string, Tone>> = {
  ...{ synced: 'good', stalled: 'warn', failing: 'warn', banned: 'bad' },
};

/** Whether a peer's key answers where it is said to be, for those who ask. */
function PeerKey({ url, address }: { readonly url: string; readonly address: string | null }) {
  const { coreUrl } = useNetwork();
  const asking = useAction((place: string) =>
    verify('coreKeys', { coreUrl, cores: [{ url: place, address }] }),
  );
  const { state } = asking;
  if (address === null || !URL.canParse(url)) return null;
  if (state.kind === 'idle')
    return (
      <span>
        <button type="button" class="plain" onClick={() => asking.run(url)}>
          Ask for its key there
        </button>
      </span>
    );
  const proof: Proof<JudgedFact> =
    state.kind === 'done'
      ? { kind: 'proven', value: state.value[0]! }
      : state.kind === 'failed'
        ? state
        : { kind: 'waiting' };
  return (
    <Fact proof={proof} of="core">
      its key
    </Fact>
  );
}

/** Core nodes announce keys, not where they are: the one that the page asks tells of its peers, and their keys prove it. */
function Peers() {
  const sync = useCore('/api/v0/sync/status', readPeers, SELDOM_MS);
  return (
    <Panel
      title="Peers of the core node that is asked"
      aside={<ProofMark kind="said" of="coreWord" source={sync.source} label="its own word" />}
    >
      <Loaded from={sync} lines={3}>
        {({ peers, messages, behind }) => (
          <>
            <p class="muted">
              It has {count(messages)} messages
              {behind > 0 ? `, and the best of its peers ${count(behind)} more` : ''}.
            </p>
            {peers.length === 0 ? (
              <Empty title="It has no peers." />
            ) : (
              <ul class="lines">
                {peers.map((peer) => (
                  <li key={peer.name}>
                    <Badge tone={PEER_TONES[peer.state] ?? 'plain'}>{peer.state}</Badge>
                    <span class="grow stack">
                      <Safe text={peer.name} limit={80} />
                      <PeerKey url={peer.name} address={peer.address} />
                      <span class="muted">
                        {peer.messages === null ? '' : `${count(peer.messages)} messages, `}
                        {count(peer.taken)} taken from it, {count(peer.given)} given
                      </span>
                    </span>
                    <span class="muted">
                      {peer.failure ?? (
                        <>
                          in step <Time ms={peer.synced_ms} />
                        </>
                      )}
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

/** How a node was over time, beside its scores. */
export const NodeHistory = (node: NodeProps) => (
  <>
    <Uptime {...node} />
    <Versions {...node} />
    {node.kind === 'core' ? <Peers /> : null}
  </>
);
