import type { Resources } from '../data/answers.ts';
import { nodeLink } from '../data/network.ts';
import { useSchedulerNodes, useScores } from '../data/questions.ts';
import { Badge, Hash, Panel, Safe, Time } from '../parts/basic.tsx';
import { Empty, Failed, Loading } from '../parts/states.tsx';
import { type Column, SortTable } from '../parts/table.tsx';
import { mebibytes, score } from '../pure/format.ts';
import { meaningOfCode, mergeNodes, type NodeRow, placeOfNodes, roomAt } from '../pure/nodes.ts';

const hostOf = (url: string | null) =>
  url === null ? null : url.replace(/^https?:\/\//, '').replace(/\/$/, '');

export function NodeState({ row }: { readonly row: NodeRow }) {
  if (row.isHealthy === true && !row.reason) return <Badge tone="good">takes machines</Badge>;
  if (row.isHealthy === true) return <Badge tone="warn">draining</Badge>;
  if (row.isHealthy === false) return <Badge tone="warn">takes none</Badge>;
  const status = row.score && 'status' in row.score ? row.score.status : null;
  if (status === 'dead') return <Badge tone="bad">dead</Badge>;
  return <Badge tone={status === 'inactive' ? 'warn' : 'plain'}>{status ?? 'measured'}</Badge>;
}

function ScoreBar({ value }: { readonly value: number | null }) {
  const tone = value === null ? 'plain' : value >= 0.8 ? 'good' : value >= 0.4 ? 'warn' : 'bad';
  return (
    <span class="scorebar">
      <span class="number">{score(value)}</span>
      <span class="track" aria-hidden="true">
        <span class={`fill ${tone}`} style={{ width: `${(value ?? 0) * 100}%` }} />
      </span>
    </span>
  );
}

const gibibytes = (gib: number) => mebibytes(gib * 1_024);

const freeText = (free: number | undefined, total: number | undefined, format: (value: number) => string) =>
  total === undefined ? '–' : free === undefined ? format(total) : `${format(free)} of ${format(total)}`;

const totalText = (
  rows: readonly NodeRow[],
  pick: (resources: Resources) => number,
  format: (value: number) => string,
) => {
  const room = roomAt(rows, pick);
  return freeText(room?.free, room?.total, format);
};

const COLUMNS: readonly Column<NodeRow>[] = [
  {
    name: 'node',
    title: 'Node',
    sort: ({ id }) => id,
    total: (rows) => `all ${rows.length}`,
    cell: ({ id, url }) => (
      <span class="stack">
        <Hash value={id} href={nodeLink(id)} />
        {url === null ? null : (
          <span class="muted">
            <Safe text={hostOf(url)!} limit={48} />
          </span>
        )}
      </span>
    ),
  },
  { name: 'kind', title: 'Kind', sort: ({ kind }) => kind, cell: ({ kind }) => kind },
  {
    name: 'score',
    title: 'Score',
    isNumber: true,
    sort: (row) => row.score?.total_score,
    cell: (row) => <ScoreBar value={row.score?.total_score ?? null} />,
  },
  {
    name: 'state',
    title: 'State',
    sort: ({ isHealthy }) => isHealthy,
    cell: (row) => (
      <span class="stack">
        <NodeState row={row} />
        {row.reason === null ? null : (
          <span class="muted">
            <Safe text={row.reason.message} limit={120} />
          </span>
        )}
        {row.score && 'codes' in row.score && row.score.codes.length > 0 ? (
          <span class="muted">{row.score.codes.map(meaningOfCode).join('; ')}</span>
        ) : null}
      </span>
    ),
  },
  {
    name: 'cores',
    title: 'Cores free',
    isNumber: true,
    sort: ({ free, capacity }) => (free ?? capacity)?.cpu,
    cell: ({ free, capacity }) => freeText(free?.cpu, capacity?.cpu, String),
    total: (rows) => totalText(rows, ({ cpu }) => cpu, String),
  },
  {
    name: 'memory',
    title: 'Memory free',
    isNumber: true,
    sort: ({ free, capacity }) => (free ?? capacity)?.memory_mib,
    cell: ({ free, capacity }) => freeText(free?.memory_mib, capacity?.memory_mib, mebibytes),
    total: (rows) => totalText(rows, ({ memory_mib: memory }) => memory, mebibytes),
  },
  {
    name: 'disk',
    title: 'Disk free',
    isNumber: true,
    sort: ({ free, capacity }) => (free ?? capacity)?.disk_gib,
    cell: ({ free, capacity }) => freeText(free?.disk_gib, capacity?.disk_gib, gibibytes),
    total: (rows) => totalText(rows, ({ disk_gib: disk }) => disk, gibibytes),
  },
  {
    name: 'machines',
    title: 'Machines',
    isNumber: true,
    sort: ({ instances }) => instances,
    cell: ({ instances }) => instances ?? '–',
    total: (rows) => rows.reduce((all, { instances }) => all + (instances ?? 0), 0),
  },
  {
    name: 'version',
    title: 'Version',
    sort: ({ version }) => version,
    cell: ({ version }) => (version === null ? '–' : <Safe text={version} limit={24} />),
  },
];

export function Nodes() {
  const [scheduled, scores] = [useSchedulerNodes(), useScores()];
  const [newest] = scores.value?.messages ?? [];
  const isAsking =
    (!scheduled.value && scheduled.isKnown && !scheduled.failure) || (!scores.value && !scores.failure);
  const rows = mergeNodes({ scheduled: scheduled.value?.nodes ?? [], ...scores.counting });
  const hasFailed = Boolean(scheduled.failure ?? scores.failure);
  const { title, shows } = placeOfNodes(rows.length, { isAsking, hasFailed });
  return (
    <>
      <h1>Nodes</h1>
      <Panel
        title={title}
        wide
        aside={
          newest ? (
            <>
              scores published <Time ms={newest.time * 1_000} />
            </>
          ) : undefined
        }
      >
        {scheduled.failure ? <Failed failure={scheduled.failure} /> : null}
        {scores.failure ? <Failed failure={scores.failure} /> : null}
        {shows === 'rows' ? (
          <SortTable label="nodes" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} first="node" />
        ) : shows === 'loading' ? (
          <Loading lines={5} />
        ) : shows === 'failure' ? null : (
          <Empty title="No node is known yet.">
            <p class="muted">
              Nodes appear when a scheduler uses them or a monitor has scored them. A first score takes an
              hour.
            </p>
          </Empty>
        )}
      </Panel>
    </>
  );
}
