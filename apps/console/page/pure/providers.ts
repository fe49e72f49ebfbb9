import type { Found } from '../workers/facts.ts';
import { type NodeRow, type Room, roomOf } from './nodes.ts';

/** Nodes in the network of one provider. */
export interface Provider {
  readonly key: string;
  /** The number of its autonomous system, as a monitor measured it; null where no monitor did. */
  readonly asn: number | null;
  /** The system's name by the monitor's table; null where it has none. */
  readonly name: string | null;
  /** The /32 that the nodes announce addresses from, for nodes that no monitor measured; null for those that announce none. */
  readonly prefix: string | null;
  readonly nodes: readonly NodeRow[];
  /** Room of those that take new machines. */
  readonly room: Room;
}

const GROUPS = 8;

/** The first 32 bits of an IPv6 address or prefix, which registries give to one provider; null where it is none. */
export function networkOf(address: string | null): string | null {
  const [head = '', tail, ...more] = (address ?? '').replace(/\/.*$/, '').toLowerCase().split('::');
  if (more.length > 0) return null;
  const [before, after] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':')));
  const missing = GROUPS - before!.length - after!.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...before!, ...Array<string>(missing).fill('0'), ...after!];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/.test(group))) return null;
  const [first, second] = groups.map((group) => Number.parseInt(group, 16).toString(16));
  return second === '0' ? `${first}::/32` : `${first}:${second}::/32`;
}

type Place = Pick<Provider, 'key' | 'asn' | 'name' | 'prefix'>;

function placeOf(node: NodeRow, found: Found | undefined): Place {
  if (found?.asn != null) return { key: `AS${found.asn}`, asn: found.asn, name: found.asName, prefix: null };
  const prefix = networkOf(node.scheduler?.ipv6 ?? null);
  return { key: prefix ?? 'unknown', asn: null, name: null, prefix };
}

/** Nodes by the provider that they stand at, the one with most nodes first. @param measured by node id */
export function byProvider(
  nodes: readonly NodeRow[],
  measured: ReadonlyMap<string, Found>,
): readonly Provider[] {
  const places = new Map(nodes.map((node) => [node, placeOf(node, measured.get(node.id))]));
  const groups = Map.groupBy(nodes, (node) => places.get(node)!.key);
  return [...groups.values()]
    .map((own) => {
      const named = own.map((node) => places.get(node)!);
      const scheduled = own.flatMap(({ scheduler }) => scheduler ?? []);
      return {
        ...named[0]!,
        name: named.find(({ name }) => name !== null)?.name ?? null,
        nodes: own,
        room: roomOf(scheduled),
      };
    })
    .sort((one, other) => other.nodes.length - one.nodes.length || (one.key < other.key ? -1 : 1));
}
