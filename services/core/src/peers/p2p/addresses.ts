import { NODE_LIST_KEY } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { findField } from '../../state/aggregates/aggregates.ts';
import type { Schema } from '../../store/schema.ts';
import { askGreeting } from '../sync/greeting.ts';
import { isNodeMultiaddr, peerOf } from './multiaddr.ts';

/** Of the node list. Deployed networks say the `multiaddress` of each, monitors of Skerry the `address` where it answers over HTTP. */
const NODE_LIST_FIELD = 'nodes';
const ADDRESSES_MAX = 1_000;
/** Listed nodes whose word of where they gossip is kept. */
const SAID_MAX = 1_000;
/** Of each listed node: none takes the places of the others. */
const ADDRESSES_OF_LISTED = 8;
const URL_CHARS_MAX = 2_048;
/** Listed nodes that are asked at once. */
const ASKED = 8;
/** How long the word of a listed node counts, and how soon one is asked again that said nothing, in milliseconds. */
const SAID_MS = { kept: 600_000, silent: 60_000 } as const;

/** Addresses of a form that can be called; anything may stand in what strangers say. */
export function pickAddresses(values: readonly unknown[]): string[] {
  return [...new Set(values.filter(isNodeMultiaddr))].slice(0, ADDRESSES_MAX);
}

/** One of each node before a second one of any: where there are too many, each has its share. */
function inTurn(nodes: readonly (readonly string[])[]): string[] {
  const most = nodes.reduce((length, addresses) => Math.max(length, addresses.length), 0);
  return Array.from({ length: most }, (_, at) => nodes.flatMap((addresses) => addresses[at] ?? [])).flat();
}

/**
 * What is known from now on: one address of each connected node that is named or was known before, then the other addresses. Those of
 * connected nodes come first: libp2p queues 500 calls and refuses the rest, and where a connection is lost, the node is to be called
 * again. A node that is not named any more is kept for as long as it is connected. Of several addresses of a node the first counts: a
 * second to eighth one that a node says may be another's, and false.
 */
export function keepConnected(
  addresses: readonly string[],
  before: readonly string[],
  connected: ReadonlySet<string>,
): string[] {
  const kept = new Map<string, string>();
  for (const address of [...addresses, ...before]) {
    const peer = peerOf(address);
    if (connected.has(peer) && !kept.has(peer)) kept.set(peer, address);
  }
  return [...new Set([...kept.values(), ...addresses])].slice(0, ADDRESSES_MAX);
}

/** The same in their order, beginning at another place: where not all are kept or called, each has its turn. */
function turned<Value>(all: readonly Value[], random: () => number): Value[] {
  const at = Math.floor(random() * all.length);
  return [...all.slice(at), ...all.slice(0, at)];
}

const isMultiaddr = (place: string) => place.startsWith('/');

/** What a core node says of itself over HTTP. */
async function askAddresses(url: string, signal: AbortSignal, mayBePrivate?: boolean): Promise<string[]> {
  const { node_multi_addresses: addresses } = await askGreeting(url, signal, mayBePrivate);
  return Array.isArray(addresses) ? pickAddresses(addresses) : [];
}

/** Where a node answers, without credentials, query and fragment. */
function urlOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > URL_CHARS_MAX || !URL.canParse(value)) return undefined;
  const { protocol, host, pathname } = new URL(value);
  return /^https?:$/.test(protocol) ? `${protocol}//${host}${pathname}` : undefined;
}

interface Row {
  readonly multiaddress?: unknown;
  readonly address?: unknown;
}

/** Places of the nodes: each one's multiaddr, or the URL where it answers if the list says none. */
async function readNodeList(db: Kysely<Schema>, owner: string): Promise<string[]> {
  const nodes = await findField(db, { owner, key: NODE_LIST_KEY, field: NODE_LIST_FIELD });
  const rows: readonly (Row | null)[] = Array.isArray(nodes) ? nodes : [];
  const places = rows.flatMap((row) => {
    const { multiaddress, address }: Row = row ?? {};
    return isNodeMultiaddr(multiaddress) ? multiaddress : (urlOf(address) ?? []);
  });
  return [...new Set(places)];
}

/**
 * Core nodes of a list that says where they answer over HTTP, and what each said last of where it gossips. A few are asked at a time,
 * those first whose word is not kept.
 */
export class ListedNodes {
  /** In the order in which they were asked. */
  readonly #said = new Map<string, { readonly addresses: readonly string[]; readonly dueMs: number }>();
  readonly #mayBePrivate: boolean;
  readonly #uptime: () => number;

  /**
   * @param mayBePrivate whether they are asked at private addresses: anybody may have announced one
   * @param uptime milliseconds since whenever; never set
   */
  constructor(mayBePrivate: boolean, uptime: () => number = () => performance.now()) {
    this.#mayBePrivate = mayBePrivate;
    this.#uptime = uptime;
  }

  /**
   * Where each of those at these places gossips: at its multiaddr, or as it said last over HTTP. Who is not listed any more is forgotten,
   * and of those who are too many whoever was asked longest ago.
   */
  async addressesOf(places: readonly string[], signal: AbortSignal): Promise<(readonly string[])[]> {
    const urls = places.filter((place) => !isMultiaddr(place));
    const listed = new Set(urls);
    for (const url of this.#said.keys()) if (!listed.has(url)) this.#said.delete(url);
    const dueOf = (url: string) => this.#said.get(url)?.dueMs ?? Number.NEGATIVE_INFINITY;
    const due = urls
      .filter((url) => dueOf(url) <= this.#uptime())
      .toSorted((a, b) => dueOf(a) - dueOf(b) || 0);
    await Promise.all(due.slice(0, ASKED).map((url) => this.#ask(url, signal)));
    const oldest = [...this.#said.keys()].slice(0, Math.max(0, this.#said.size - SAID_MAX));
    for (const url of oldest) this.#said.delete(url);
    return places.map((place) => (isMultiaddr(place) ? [place] : (this.#said.get(place)?.addresses ?? [])));
  }

  async #ask(url: string, signal: AbortSignal): Promise<void> {
    const told = await askAddresses(url, signal, this.#mayBePrivate).catch(() => undefined);
    const addresses = told?.slice(0, ADDRESSES_OF_LISTED) ?? this.#said.get(url)?.addresses ?? [];
    this.#said.delete(url);
    this.#said.set(url, { addresses, dueMs: this.#uptime() + (told ? SAID_MS.kept : SAID_MS.silent) });
  }
}

export interface AddressSources {
  readonly db: Kysely<Schema>;
  /** Core nodes by URL, and by multiaddr. */
  readonly peers: readonly string[];
  /** Whose node list counts. */
  readonly nodeListOwner: string | undefined;
  readonly listed: ListedNodes;
  /** From 0 up to 1; a list is begun at another place each time. */
  readonly random?: () => number;
}

async function listListed(
  { db, nodeListOwner, listed, random = Math.random }: AddressSources,
  signal: AbortSignal,
): Promise<(readonly string[])[]> {
  if (nodeListOwner === undefined) return [];
  return listed.addressesOf(turned(await readNodeList(db, nodeListOwner), random), signal);
}

/** Every node that this one knows of: those that the settings name, and in turn what those and the network's list say. */
export async function listAddresses(sources: AddressSources, signal: AbortSignal): Promise<string[]> {
  const { peers } = sources;
  const asked = peers
    .filter((peer) => !isMultiaddr(peer))
    .map((url) => askAddresses(url, signal).catch(() => []));
  const [listed, ...told] = await Promise.all([listListed(sources, signal), ...asked]);
  return pickAddresses([...peers, ...inTurn([...told, ...listed])]);
}
