import { readIndexedNetworks, readPeers } from '../data/answers-of-services.ts';
import { nodeLink, useNetwork } from '../data/network.ts';
import {
  SERVICES_SHOWN,
  useCore,
  useHealth,
  useSchedulerNodes,
  useSchedulerStatus,
  useScores,
  useServices,
  useServicesDown,
} from '../data/questions.ts';
import { Badge, Facts, Hash, Meter, Panel, ProofMark, Safe, Time } from '../parts/basic.tsx';
import { Lazy } from '../parts/lazy.tsx';
import { Empty, Failed, Loaded, Loading, Unknown } from '../parts/states.tsx';
import { mebibytes } from '../pure/format.ts';
import { type Room, roomOf } from '../pure/nodes.ts';
import { linkTo } from '../pure/route.ts';
import { findProblems, type Problem, wellness } from '../pure/verdict.ts';
import { Stats } from './overview-stats.tsx';

const ProblemLine = ({ problem }: { readonly problem: Problem }) => {
  const { subject, why, sinceMs, node } = problem;
  return (
    <li>
      <span class="problem-subject">
        <Safe text={subject} /> {node ? <Hash value={node} href={nodeLink(node)} /> : null}
      </span>
      <span>
        <Safe text={why} />
      </span>
      <span class="muted">
        {sinceMs === null ? (
          ''
        ) : (
          <>
            since <Time ms={sinceMs} />
          </>
        )}
      </span>
    </li>
  );
};

const SELDOM_MS = 30_000;

/** What is wrong, by all who tell of it. */
function useProblems() {
  const [health, nodes, services] = [useHealth(), useSchedulerNodes(), useServicesDown()];
  const scheduler = useSchedulerStatus();
  const scores = useScores();
  const peers = useCore('/api/v0/sync/status', readPeers, SELDOM_MS);
  const chains = useCore('/api/v0/indexer', readIndexedNetworks, SELDOM_MS);
  const own = [health, scores, peers, chains];
  const others = [nodes, services, scheduler];
  // Nothing is said before all were asked: it would be said otherwise a moment later.
  const isAsking =
    others.some(({ isKnown, value, failure }) => isKnown && value === undefined && !failure) ||
    [scores, peers, chains].some(({ value, failure }) => value === undefined && !failure);
  const problems = findProblems({
    health: health.value,
    nodes: nodes.value?.nodes ?? [],
    services: services.value ?? [],
    scheduler: scheduler.value,
    scores: scores.value?.messages ?? [],
    scoresMs: scores.atMs ?? 0,
    peers: peers.value?.peers ?? [],
    chains: chains.value?.networks ?? [],
  });
  const silentOf = (asked: readonly Pick<typeof health, 'failure'>[]) =>
    asked.filter(({ failure }) => failure).length;
  return {
    ...{ health, isAsking, problems },
    ...wellness(problems.length, { ofCore: silentOf(own), ofServices: silentOf(others) }),
  };
}

/** Whether the network is well: the first thing that is read. */
function Verdict() {
  const { health, isAsking, problems, isWell, title } = useProblems();
  if (!health.value || (isAsking && !health.failure))
    return (
      <div class="verdict whole-network">
        {health.failure ? <Failed failure={health.failure} /> : <Loading lines={2} />}
      </div>
    );
  return (
    <div
      class={`verdict whole-network ${isWell ? 'good' : 'warn'}`}
      data-state={isWell ? 'well' : 'problems'}
    >
      <p class="verdict-title">
        <span class="lamp" aria-hidden="true" />
        {title}
      </p>
      {problems.length === 0 ? null : (
        <ul class="problems">
          {problems.slice(0, 8).map((problem) => (
            <ProblemLine key={`${problem.subject} ${problem.node ?? problem.why}`} problem={problem} />
          ))}
          {problems.length > 8 ? <li class="muted">and {problems.length - 8} more</li> : null}
        </ul>
      )}
      <p class="muted">
        <ProofMark
          kind="said"
          of="coreWord"
          source={health.source}
          label="as this core node, its scheduler, status service and monitors say"
        />
        {' · '}
        <Time ms={health.atMs} />
      </p>
    </div>
  );
}

const RoomMeters = ({ total, free }: Room) => (
  <>
    <Meter
      label="Cores"
      taken={total.cpu - free.cpu}
      total={total.cpu}
      text={`${free.cpu} of ${total.cpu} free`}
    />
    <Meter
      label="Memory"
      taken={total.memory_mib - free.memory_mib}
      total={total.memory_mib}
      text={`${mebibytes(free.memory_mib)} of ${mebibytes(total.memory_mib)} free`}
    />
    <Meter
      label="Disk"
      taken={total.disk_gib - free.disk_gib}
      total={total.disk_gib}
      text={`${mebibytes(free.disk_gib * 1_024)} of ${mebibytes(total.disk_gib * 1_024)} free`}
    />
  </>
);

function RoomPanel() {
  const nodes = useSchedulerNodes();
  return (
    <Panel
      title="Room"
      aside={<ProofMark kind="said" of="schedulerWord" source={nodes.source} label="scheduler" />}
    >
      {nodes.isKnown ? (
        <Loaded from={nodes} lines={6}>
          {({ nodes: all }) =>
            all.length === 0 ? (
              <Empty title="No compute node has joined yet." />
            ) : (
              <RoomMeters {...roomOf(all)} />
            )
          }
        </Loaded>
      ) : (
        <Unknown service="scheduler" />
      )}
    </Panel>
  );
}

const percent = (value: number) => (value === 100 ? '100 %' : `${value.toFixed(2)} %`);

function ServicesPanel() {
  const services = useServices();
  return (
    <Panel
      title="Services"
      aside={<ProofMark kind="said" of="statusWord" source={services.source} label="status service" />}
    >
      {services.isKnown ? (
        <Loaded from={services} lines={6}>
          {(all) =>
            all.length === 0 ? (
              <Empty title="No service was checked yet." />
            ) : (
              <ul class="lines">
                {all.slice(0, SERVICES_SHOWN).map((one) => (
                  <li key={one.id}>
                    <Badge tone={one.online ? 'good' : 'bad'}>{one.online ? 'up' : 'down'}</Badge>
                    <span class="grow">
                      <Safe text={one.name} limit={60} />
                    </span>
                    <span class="muted number">{percent(one.online_7_days)} in 7 days</span>
                  </li>
                ))}
                {all.length > SERVICES_SHOWN ? <li class="muted">and more</li> : null}
              </ul>
            )
          }
        </Loaded>
      ) : (
        <Unknown service="status service" />
      )}
    </Panel>
  );
}

function NodePanel() {
  const health = useHealth();
  const { coreUrl, info } = useNetwork();
  return (
    <Panel
      title="This core node"
      aside={<ProofMark kind="said" of="coreWord" source={health.source} label="its own word" />}
    >
      <Loaded from={health} lines={15}>
        {({ version, checks }) => (
          <>
            <ul class="lines">
              {Object.entries(checks).map(([name, { status, reason }]) => (
                <li key={name}>
                  <Badge tone={status === 'ok' ? 'good' : status === 'degraded' ? 'warn' : 'bad'}>
                    {status}
                  </Badge>
                  <span class="grow">{name}</span>
                  {reason === null ? null : <span class="muted">{reason}</span>}
                </li>
              ))}
            </ul>
            <Facts
              rows={[
                ['name', info ? <Safe text={info.name} /> : '–'],
                ['version', version],
                ['address', info ? <Hash value={info.address} /> : '–'],
                ['API', <a href={`${coreUrl}/api/v0/docs`}>{coreUrl.replace(/^https?:\/\//, '')}</a>],
              ]}
            />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

const Believed = ({
  what,
  all,
  source,
}: {
  readonly what: string;
  readonly all: readonly string[];
  readonly source: string;
}) => (
  <li>
    <span class="grow">{what}</span>
    <span class="stack">
      {all.length === 0 ? (
        <span class="muted">nobody</span>
      ) : (
        all.slice(0, 4).map((one) => <Hash key={one} value={one} />)
      )}
      {all.length > 4 ? <span class="muted">and {all.length - 4} more</span> : null}
    </span>
    <span class="muted">{SOURCES[source] ?? 'unset'}</span>
  </li>
);

const SOURCES: Readonly<Record<string, string>> = {
  setting: 'by its setting',
  peers: 'as its peers',
  reader: 'by your list',
};

function TrustPanel() {
  const { info } = useNetwork();
  return (
    <Panel title="Whom it believes" aside={<a href={linkTo(['trust'])}>Trust</a>}>
      {info ? (
        <ul class="lines">
          <Believed
            what="schedulers"
            all={info.trust.schedulers.value}
            source={info.trust.schedulers.source}
          />
          <Believed
            what="monitors"
            all={info.trust.scoring_publishers.value}
            source={info.trust.scoring_publishers.source}
          />
          <Believed
            what="credit"
            all={info.trust.credit_publishers.value}
            source={info.trust.credit_publishers.source}
          />
        </ul>
      ) : (
        <Loading lines={4} />
      )}
    </Panel>
  );
}

/** Is the network well, at a glance. */
export const Overview = () => (
  <>
    <h1 class="unseen">Overview</h1>
    <Verdict />
    <Stats />
    <div class="wide-row">
      <Lazy load={() => import('./later.tsx')} show={({ Providers }) => <Providers />} />
    </div>
    <div class="flow">
      <RoomPanel />
      <ServicesPanel />
      <NodePanel />
      <TrustPanel />
    </div>
  </>
);
