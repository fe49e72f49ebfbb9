import type { ComponentChildren } from 'preact';
import type { Instance } from '../../data/answers.ts';
import { ask } from '../../data/ask.ts';
import { useResource } from '../../data/resource.ts';
import { Facts, Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { fields, maybe, number, record, text } from '../../pure/read.ts';
import { TryHttps } from './https.tsx';
import { useMachineUrls, useNodeUrl } from './urls.ts';

const SELDOM_MS = 30_000;
const HTTPS = 443;
const HTTP = 80;

const readExecutions = record(
  fields({
    networking: fields({
      host_ipv4: maybe(text),
      ipv4_ip: maybe(text),
      mapped_ports: maybe(record(fields({ host: number }))),
    }),
  }),
);

/** What a machine's node says of it: by IPv4, ports of the node lead to those of the machine. */
function useAtNode(machine: Instance) {
  const { instance_id: id } = machine;
  const url = useNodeUrl(machine);
  const told = useResource(
    url,
    async (signal) =>
      url === '' ? undefined : (await ask(`${url}/v2/about/executions/list`, readExecutions, signal))[id],
    url === '' ? Number.POSITIVE_INFINITY : SELDOM_MS,
  );
  return { at: told.value?.networking, failure: told.failure };
}

const portsText = (ports: readonly number[]) =>
  ports.length === 0 ? 'none' : ports.toSorted((one, other) => one - other).join(', ');

const Link = ({ url }: { readonly url: string }) => (
  <a href={url} target="_blank" rel="noopener noreferrer">
    {url}
  </a>
);

/** Where a machine can be reached from outside. */
export function MachinePorts({ machine }: { readonly machine: Instance }) {
  const { instance_id: id, ipv6, firewall } = machine;
  const { allowedPorts: open, allowedUdpPorts, proxyProtocol } = firewall;
  const urls = useMachineUrls(id);
  const { at, failure } = useAtNode(machine);
  const mapped = Object.entries(at?.mapped_ports ?? {});
  const named: ComponentChildren[] = urls
    ? [
        ...(open.includes(HTTPS) ? [<Link key="https" url={urls.https} />] : []),
        ...(open.includes(HTTP) ? [<Link key="http" url={urls.http} />] : []),
      ]
    : [];
  return (
    <Panel
      title="Addresses and ports"
      aside={<ProofMark kind="said" of="nodeWord" label="core node, gateway, its node" />}
    >
      <Facts
        rows={[
          ['open ports', portsText(open)],
          ...(allowedUdpPorts?.length ? [['open by UDP', portsText(allowedUdpPorts)] as const] : []),
          ['IPv6', ipv6 === '' ? 'no address yet' : <code>{ipv6}</code>],
          [
            'under its name',
            named.length === 0 ? (
              'neither 80 nor 443 is open, or the gateway is not known'
            ) : (
              <span class="stack">{named}</span>
            ),
          ],
          ...(urls && open.includes(HTTPS)
            ? [['HTTPS', <TryHttps key={urls.https} id={id} url={urls.https} />] as const]
            : []),
          [
            'IPv4',
            mapped.length === 0 ? (
              (failure?.message ?? 'none of its ports has one at its node')
            ) : (
              <ul class="lines">
                {mapped.map(([port, { host }]) => (
                  <li key={port}>
                    <code>
                      <Safe text={`${at?.host_ipv4 ?? 'its node'}:${host}`} limit={80} />
                    </code>
                    <span class="muted">leads to port {port}</span>
                  </li>
                ))}
              </ul>
            ),
          ],
          ...(proxyProtocol ? [['PROXY protocol', 'TLS connections begin with its header'] as const] : []),
        ]}
      />
    </Panel>
  );
}
