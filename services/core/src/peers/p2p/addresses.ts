import { NODE_LIST_KEY } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { findField } from '../../state/aggregates/aggregates.ts';
import type { Schema } from '../../store/schema.ts';
import { askGreeting } from '../sync/greeting.ts';
import { isNodeMultiaddr } from './multiaddr.ts';

/** Of the node list, with `multiaddress` for each (facts of deployed nodes). */
const NODE_LIST_FIELD = 'nodes';
const ADDRESSES_MAX = 1_000;

/** Addresses of a form that can be called; anything may stand in what strangers say. */
export function pickAddresses(values: readonly unknown[]): string[] {
  return [...new Set(values.filter(isNodeMultiaddr))].slice(0, ADDRESSES_MAX);
}

/** What a core node says of itself over HTTP. */
async function askAddresses(url: string, signal: AbortSignal): Promise<string[]> {
  const { node_multi_addresses: addresses } = await askGreeting(url, signal);
  return Array.isArray(addresses) ? pickAddresses(addresses) : [];
}

async function readNodeList(db: Kysely<Schema>, owner: string): Promise<string[]> {
  const nodes = await findField(db, { owner, key: NODE_LIST_KEY, field: NODE_LIST_FIELD });
  if (!Array.isArray(nodes)) return [];
  return pickAddresses((nodes as { multiaddress?: unknown }[]).map((node) => node?.multiaddress));
}

export interface AddressSources {
  readonly db: Kysely<Schema>;
  /** Core nodes by URL, and by multiaddr. */
  readonly peers: readonly string[];
  /** Whose node list counts. */
  readonly nodeListOwner: string | undefined;
}

/** Every node that this one knows of: configured ones, and those of the network's list. */
export async function listAddresses(sources: AddressSources, signal: AbortSignal): Promise<string[]> {
  const { db, peers, nodeListOwner } = sources;
  const asked = peers
    .filter((peer) => !peer.startsWith('/'))
    .map((url) => askAddresses(url, signal).catch(() => []));
  const found = await Promise.all([
    ...asked,
    nodeListOwner === undefined ? [] : readNodeList(db, nodeListOwner),
  ]);
  return pickAddresses([...peers, ...found.flat()]);
}
