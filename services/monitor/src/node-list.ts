import { createHash } from 'node:crypto';
import { type NodeKind, readItemHash } from '@skerry/protocol';

export interface MeasuredNode {
  readonly kind: NodeKind;
  /** 64 lower-case hexadecimal digits. */
  readonly nodeId: string;
  /** http or https, ending with `/`. */
  readonly url: string;
  /** The address of the key that announced the node at this URL, from which its id follows. */
  readonly address?: string;
  /** Of an announced node: somebody else whom the monitor believes names it, too. */
  readonly isListed?: true;
}

/** More is no network but an attack on the monitor. */
const NODES_MAX = 50_000;
const URL_CHARS_MAX = 2_048;
const CORE_PORT = 4024;
const IPV4_MULTIADDRESS = /\/ip4\/([0-9]{1,3}(?:\.[0-9]{1,3}){3})\//;

/** A base address to measure, or undefined for what is none. Credentials, query and fragment are dropped. */
export function parseBaseUrl(text: string): string | undefined {
  if (text.length > URL_CHARS_MAX || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || url.hostname === '') return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}/`;
}

type Json = Readonly<Record<string, unknown>>;
const rowsOf = (value: unknown): Json[] =>
  Array.isArray(value)
    ? value.filter((one): one is Json => typeof one === 'object' && one !== null).slice(0, NODES_MAX)
    : [];
const nodeIdOf = ({ hash }: Json) => (typeof hash === 'string' ? readItemHash(hash) : undefined);

/** Lists of deployed networks say a multiaddress, those that monitors of this kind keep (listContentOf) a URL. */
function coreUrlOf({ multiaddress, address }: Json): string | undefined {
  const ip = typeof multiaddress === 'string' ? IPV4_MULTIADDRESS.exec(multiaddress)?.[1] : undefined;
  if (ip !== undefined) return parseBaseUrl(`http://${ip}:${CORE_PORT}/`);
  return typeof address === 'string' ? parseBaseUrl(address) : undefined;
}

function computeUrlOf({ address }: Json): string | undefined {
  if (typeof address !== 'string' || address.length > URL_CHARS_MAX) return undefined;
  const bare = address.trim().replace(/^\/+|\/+$/g, '');
  if (bare === '') return undefined;
  return parseBaseUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(bare) ? bare : `https://${bare}`);
}

function nodesOf(kind: NodeKind, rows: readonly Json[], urlOf: (row: Json) => string | undefined) {
  return rows.flatMap((row): MeasuredNode[] => {
    const [nodeId, url] = [nodeIdOf(row), urlOf(row)];
    return nodeId === undefined || url === undefined ? [] : [{ kind, nodeId, url }];
  });
}

/** The aggregate `corechannel` of the owner of the node list: `nodes` and `resource_nodes`. Rows without id or address are left out. */
export function parseNodeAggregate(content: unknown): MeasuredNode[] {
  const { nodes, resource_nodes } = (content ?? {}) as Json;
  return [
    ...nodesOf('core', rowsOf(nodes), coreUrlOf),
    ...nodesOf('compute', rowsOf(resource_nodes), computeUrlOf),
  ];
}

/** A core node of the settings: `URL`, or `ID@URL` where the network knows it by an id. */
export function parseCoreNode(text: string): MeasuredNode {
  const [, given, address] = /^(?:([0-9a-fA-F]{64})@)?(.+)$/.exec(text) ?? [];
  const url = parseBaseUrl(address ?? '');
  if (url === undefined) throw new Error('expected http(s)://HOST or ID@http(s)://HOST');
  const nodeId = given?.toLowerCase() ?? createHash('sha256').update(`net-core\n${url}`).digest('hex');
  return { kind: 'core', nodeId, url };
}

/** Each node once: the first that names an id has it. Where its own key announced the same URL, it can prove that. */
export function distinctNodes(nodes: Iterable<MeasuredNode>): MeasuredNode[] {
  const byId = new Map<string, MeasuredNode>();
  for (const node of nodes) {
    const id = `${node.kind}:${node.nodeId}`;
    const known = byId.get(id);
    if (known === undefined) {
      if (byId.size < NODES_MAX) byId.set(id, node);
    } else if (known.address === undefined && node.address !== undefined && node.url === known.url)
      byId.set(id, { ...known, address: node.address, isListed: true });
  }
  return [...byId.values()];
}
