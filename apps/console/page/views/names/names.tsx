import {
  type Collision,
  type NamedRoute,
  readCollisions,
  readGateway,
  readNamedRoutes,
} from '../../data/answers-of-services.ts';
import { machineLink, serviceUrl, useNetwork } from '../../data/network.ts';
import { route } from '../../data/place.ts';
import { useProof } from '../../data/prove.ts';
import { useService } from '../../data/questions.ts';
import { Badge, Facts, Hash, Panel, ProofMark, Safe, Time } from '../../parts/basic.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Empty, Loaded, Unknown } from '../../parts/states.tsx';
import { type Column, SortTable } from '../../parts/table.tsx';
import { count } from '../../pure/format.ts';
import { linkTo } from '../../pure/route.ts';
import { WhyPanel } from './why.tsx';

const SELDOM_MS = 30_000;
const SHOWN = 100;
const NAME_CHARS = 253;

interface Row extends NamedRoute {
  /** What the hash gives; undefined until it was computed here. */
  readonly computed: string | undefined;
}

const nameMark = ({ subdomain, computed }: Row) =>
  computed === undefined ? 'waiting' : computed === subdomain ? 'proven' : 'wrong';

const COLUMNS: readonly Column<Row>[] = [
  {
    name: 'name',
    title: 'Name',
    sort: ({ subdomain }) => subdomain,
    cell: (row) => (
      <>
        <ProofMark kind={nameMark(row)} of="hostname" />{' '}
        <a href={linkTo(['names', row.subdomain])}>
          <Safe text={row.subdomain} limit={80} />
        </a>
      </>
    ),
  },
  {
    name: 'state',
    title: 'State',
    sort: ({ active }) => Number(active),
    cell: ({ active, shared_by: shared }) => (
      <>
        <Badge tone={active ? 'good' : 'plain'}>{active ? 'routed' : 'not routed'}</Badge>{' '}
        {shared > 1 ? <Badge tone="warn">{`shared by ${shared}`}</Badge> : null}
      </>
    ),
  },
  {
    name: 'machine',
    title: 'Machine',
    sort: ({ instance_hash: hash }) => hash,
    cell: ({ instance_hash: hash }) => <Hash value={hash} href={machineLink(hash)} />,
  },
  {
    name: 'address',
    title: 'Leads to',
    sort: ({ ipv6 }) => ipv6,
    cell: ({ ipv6 }) => (ipv6 === null ? '–' : <code>{ipv6}</code>),
  },
];

function Routes() {
  const position = Math.max(0, Number.parseInt(route.value.query.from ?? '0', 10) || 0);
  const listed = useService(
    'gateway',
    `/api/routes?limit=${SHOWN}&position=${position}`,
    readNamedRoutes,
    SELDOM_MS,
  );
  const ids = listed.value?.routes.map((one) => one.instance_hash);
  const names = useProof('hostnames', ids ? { ids } : undefined);
  return (
    <Panel
      title="Names and where they lead"
      wide
      aside={<ProofMark kind="said" of="gatewayWord" source={listed.source} label="gateway" />}
    >
      <Loaded from={listed} lines={5}>
        {({ routes, total, next_position: next }) =>
          routes.length === 0 ? (
            <Empty title="The gateway knows no name yet." />
          ) : (
            <>
              <SortTable
                label="names"
                columns={COLUMNS}
                rows={routes.map((one) => ({
                  ...one,
                  computed: names.kind === 'proven' ? names.value[one.instance_hash] : undefined,
                }))}
                keyOf={(row) => row.subdomain}
                first="name"
              />
              <p class="actions">
                <span class="muted">
                  {count(position + 1)} to {count(position + routes.length)} of {count(total)}
                </span>
                {position > 0 ? (
                  <a href={linkTo(['names'], { from: String(Math.max(0, position - SHOWN)) })}>
                    those before
                  </a>
                ) : null}
                {next === null ? null : <a href={linkTo(['names'], { from: String(next) })}>those after</a>}
              </p>
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

const CollisionLine = ({ collision: { subdomain, holder, waiting } }: { readonly collision: Collision }) => (
  <li>
    <a class="grow" href={linkTo(['names', subdomain])}>
      <Safe text={subdomain} limit={80} />
    </a>
    <span class="stack">
      <span>
        <Hash value={holder} href={machineLink(holder)} /> has it
      </span>
      {waiting.map(({ instance_hash: hash, because }) => (
        <span key={hash} class="muted">
          <Hash value={hash} href={machineLink(hash)} /> waits: <Safe text={because} limit={200} />
        </span>
      ))}
    </span>
  </li>
);

function Collisions() {
  const shared = useService('gateway', `/api/collisions?limit=${SHOWN}`, readCollisions, SELDOM_MS);
  return (
    <Panel
      title="Names that several machines share"
      aside={<ProofMark kind="said" of="gatewayWord" source={shared.source} label="gateway" />}
    >
      <Loaded from={shared} lines={2}>
        {({ collisions }) =>
          collisions.length === 0 ? (
            <Empty title="None: each name has one machine." />
          ) : (
            <ul class="lines">
              {collisions.map((one) => (
                <CollisionLine key={one.subdomain} collision={one} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function About() {
  const told = useService('gateway', '/api/status', readGateway);
  return (
    <Panel
      title="The gateway"
      aside={<ProofMark kind="said" of="gatewayWord" source={told.source} label="gateway" />}
    >
      <Loaded from={told} lines={4}>
        {(gateway) => (
          <Facts
            rows={[
              ['names end with', <Safe text={gateway.domain} limit={120} />],
              ['routed', `${count(gateway.route_count)} of ${count(gateway.instance_count)} machines`],
              ['ports', `${gateway.https_port ?? 443} for TLS, ${gateway.http_port ?? 80} for HTTP`],
              [
                'last change',
                gateway.last_sync_time === 0 ? 'none yet' : <Time ms={gateway.last_sync_time * 1_000} />,
              ],
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

const Look = () => (
  <Panel title="Why does a name not answer?">
    <Form
      label="a name"
      button="Look"
      onSend={({ name = '' }) => {
        location.hash = linkTo(['names', name.trim()]);
      }}
    >
      <Field
        name="name"
        label="Host name, or the hash of a machine"
        placeholder="farm-manage-desk-seek"
        limit={NAME_CHARS}
        isRequired
        isWide
      />
    </Form>
  </Panel>
);

/** The names of the network: where each leads, and who shares one. */
export function Names() {
  const url = serviceUrl(useNetwork(), 'gateway');
  return (
    <>
      <h1>Names</h1>
      {url === null ? (
        <Unknown service="gateway" />
      ) : (
        <div class="panels">
          <About />
          <Look />
          <Collisions />
          <Routes />
        </div>
      )}
    </>
  );
}

/** One name: the chain from its machine's message to an answer. */
export const NamePage = ({ subject }: { readonly subject: string }) => (
  <>
    <p class="crumbs">
      <a href={linkTo(['names'])}>Names</a>
    </p>
    <h1 class="title">
      <Safe text={subject} limit={NAME_CHARS} />
    </h1>
    <div class="panels">
      <WhyPanel subject={subject} />
    </div>
  </>
);
