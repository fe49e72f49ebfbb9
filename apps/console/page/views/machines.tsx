import type { Instance } from '../data/answers.ts';
import { identity } from '../data/identity.ts';
import { machineLink, nodeLink, useNetwork } from '../data/network.ts';
import { route } from '../data/place.ts';
import { useProof } from '../data/prove.ts';
import { MACHINES_SHOWN, useProvableInstances } from '../data/questions.ts';
import { Badge, Hash, Panel, ProofMark, Safe, Time, type Tone } from '../parts/basic.tsx';
import { Pages, pageOf } from '../parts/pages.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, SortTable } from '../parts/table.tsx';
import { cores, mebibytes } from '../pure/format.ts';
import { linkTo } from '../pure/route.ts';
import type { JudgedMachine } from '../workers/listed.ts';

const PHASES: Readonly<Record<string, Tone>> = {
  running: 'good',
  failed: 'bad',
  stopped: 'plain',
  scheduled: 'warn',
};
export const PhaseBadge = ({ phase }: { readonly phase: string }) => (
  <Badge tone={Object.hasOwn(PHASES, phase) ? PHASES[phase]! : 'accent'}>{phase}</Badge>
);

interface Row extends Instance {
  /** Undefined until it was computed here. */
  readonly hostname: string | undefined;
  /** Undefined until it was checked here. */
  readonly judged: JudgedMachine | undefined;
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: 'name',
    title: 'Machine',
    sort: ({ name }) => name,
    cell: ({ instance_id: id, name, hostname }) => (
      <span class="stack">
        <a href={machineLink(id)}>
          <Safe text={name || 'without a name'} limit={40} />
        </a>
        <span class="muted">
          {hostname === undefined ? (
            <ProofMark kind="waiting" of="hostname" message={id} label="host name" />
          ) : (
            <ProofMark kind="proven" of="hostname" message={id} label={hostname} />
          )}
        </span>
      </span>
    ),
  },
  {
    name: 'phase',
    title: 'Phase',
    sort: ({ phase }) => phase,
    cell: ({ phase, reason }) => (
      <span class="stack">
        <PhaseBadge phase={phase} />
        {reason === null ? null : (
          <span class="muted">
            <Safe text={reason.message} limit={140} />
          </span>
        )}
      </span>
    ),
  },
  {
    name: 'size',
    title: 'Size',
    isNumber: true,
    sort: ({ memory }) => memory,
    cell: ({ cpu, memory, disk }) => `${cores(cpu)}, ${mebibytes(memory)}, ${disk} GiB`,
  },
  {
    name: 'node',
    title: 'Node',
    sort: ({ node_id: id }) => id,
    cell: ({ node_id: id }) => (id === null ? '–' : <Hash value={id} href={nodeLink(id)} />),
  },
  {
    name: 'owner',
    title: 'Owner',
    sort: ({ owner }) => owner,
    cell: ({ owner }) => <Hash value={owner} href={linkTo(['machines'], { owner })} />,
  },
  {
    name: 'created',
    title: 'Asked for',
    sort: ({ created_at: at }) => -at,
    cell: ({ created_at: at }) => <Time ms={at * 1_000} />,
  },
  {
    name: 'proof',
    title: 'Signed',
    sort: ({ judged }) => judged?.kind ?? '',
    cell: ({ judged, instance_id: id }) => (
      <span class="stack">
        <ProofMark kind={judged?.kind ?? 'waiting'} of="machine" message={id} why={judged?.why} />
        {judged === undefined ? null : (
          <span class={judged.kind === 'wrong' ? 'wrong' : 'muted'}>
            <Safe text={judged.why} limit={200} />
          </span>
        )}
      </span>
    ),
  },
];

/** Whose machines are listed, and whose else could be. */
function Whose({ owner }: { readonly owner: string }) {
  const own = identity.value?.address ?? '';
  const isOwn = own !== '' && owner.toLowerCase() === own;
  return (
    <p class="muted">
      {isOwn ? (
        'Yours alone. '
      ) : owner === '' ? null : (
        <>
          Those of <Hash value={owner} /> alone.{' '}
        </>
      )}
      {owner === '' ? null : <a href={linkTo(['machines'])}>Everybody's</a>}
      {own === '' || isOwn ? null : <a href={linkTo(['machines'], { owner: own })}>Only yours</a>}
    </p>
  );
}

/** Every machine that somebody asked for, or those of one owner. */
export function Machines() {
  const { query } = route.value;
  const { owner = '' } = query;
  const listed = useProvableInstances(owner, pageOf(query));
  const { coreUrl, info } = useNetwork();
  const ids = listed.value?.instances.map((one) => one.instance_id);
  const schedulers = info?.trust.schedulers.value;
  const rows = listed.value?.instances.map(({ whole }) => whole);
  const proof = useProof('machines', rows && schedulers ? { coreUrl, rows, schedulers } : undefined);
  const names = useProof('hostnames', ids ? { ids } : undefined);
  return (
    <>
      <div class="heading">
        <h1>Machines</h1>
        <a class="primary" href={linkTo(['create'])}>
          Create a machine
        </a>
      </div>
      <Whose owner={owner} />
      <Panel title={listed.value ? `${listed.value.pagination.total} asked for` : 'Machines'} wide>
        <Loaded from={listed} lines={6}>
          {({ instances, pagination }) =>
            instances.length === 0 ? (
              <Empty
                title={owner === '' ? 'Nobody has asked for a machine yet.' : 'This owner has no machine.'}
              >
                <p class="muted">
                  <code>skerry instance create --name web</code> asks for one.
                </p>
              </Empty>
            ) : (
              <>
                <SortTable
                  label="machines"
                  columns={COLUMNS}
                  rows={instances.map((one, at) => ({
                    ...one,
                    judged: proof.kind === 'proven' ? proof.value[at] : undefined,
                    hostname: names.kind === 'proven' ? names.value[one.instance_id] : undefined,
                  }))}
                  keyOf={(row) => row.instance_id}
                  first="created"
                />
                <Pages size={MACHINES_SHOWN} total={pagination.total} />
              </>
            )
          }
        </Loaded>
      </Panel>
    </>
  );
}
