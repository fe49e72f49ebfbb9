import { type CoreClient, callRows } from '@skerry/client';
import { Failures, type Logger, pause } from '@skerry/kit';
import { AppError, LIMITS, NETWORK_CHANNEL, NETWORK_POST, type NetworkEvent } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { parseAnnouncement, type Said, saidOfRow } from './announcement.ts';
import type { CoreStep } from './core-step.ts';
import { keepTakenBack } from './past/taken-back.ts';
import {
  applyInstance,
  applyNode,
  createView,
  type Instance,
  type Node,
  parseInstance,
  type View,
} from './view.ts';

/** Who is told what the network looks like. */
export interface Watcher {
  /** Everything was read anew. */
  onView(view: View): void;
  onNode(node: Node): void;
  /** A node took back the announcement that counted. @param instead the newest that still stands, if one does */
  onNodeGone(nodeId: string, instead: Node | undefined): void;
  onInstance(instance: Instance): void;
  onInstanceRemoved(instanceId: string): void;
  /** The core node is away; another try follows. */
  onDisconnect(error: unknown): void;
}

export interface WatchOptions {
  readonly core: CoreClient;
  readonly step: Pick<CoreStep, 'begin' | 'lost'>;
  /** The nodes as the watcher knows them. */
  readonly nodes: () => Iterable<Node>;
  /** Addresses whose nodes count; all where undefined. */
  readonly allowed: ReadonlySet<string> | undefined;
  /** Addresses of nodes that the operator vouches for: theirs are read first. */
  readonly listed: ReadonlySet<string>;
  /** Whether a node has a place however many are announced. */
  readonly isKept: (node: Node) => boolean;
  /** Learns what that hangs on, before nodes are read. Never rejects. */
  readonly prepare: () => Promise<void>;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** By what they are: what nodes tell of their instances is in the same channel, and thousands of times as much. */
const ANNOUNCEMENTS = {
  msgTypes: 'POST',
  contentTypes: NETWORK_POST.node,
  channels: NETWORK_CHANNEL.compute,
} as const;
const ANNOUNCEMENTS_PER_PAGE = 500;
/** A million: a hundred of each of ten thousand compute nodes. */
const ANNOUNCEMENT_PAGES_MAX = 2_000;
/** Of one node, whose newest are none that can be read. */
const OWN_PAGES_MAX = 10;
const REREAD_BASE_MS = 100;
const REREAD_MAX_MS = 5_000;

function tryAnnouncement(message: Said, log: Logger): Node | undefined {
  try {
    return parseAnnouncement(message);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    log.debug(
      { item_hash: message.item_hash, code: error.code },
      'a message is not a valid node announcement',
    );
    return undefined;
  }
}

interface Extent {
  readonly pagesMax: number;
  /** Asked behind each page: whether no more are wanted. */
  readonly isFound?: () => boolean;
}

/** @returns whether all were read */
async function readAnnouncements(
  options: WatchOptions,
  addresses: string | undefined,
  take: (node: Node) => void,
  { pagesMax, isFound }: Extent = { pagesMax: ANNOUNCEMENT_PAGES_MAX },
): Promise<boolean> {
  const { core, signal, log } = options;
  const filter = { ...ANNOUNCEMENTS, addresses, pagination: ANNOUNCEMENTS_PER_PAGE };
  // Not by number: an announcement that is taken back meanwhile must not hide another one.
  let cursor = '';
  for (let page = 1; page <= pagesMax; page++) {
    const list = NETWORK_LISTS_API.listNetworkMessages;
    const query = { ...filter, cursor };
    const { messages, next_cursor: next } = await callRows(core.url, list, 'messages', { query }, { signal });
    for (const message of messages) {
      const node = tryAnnouncement(saidOfRow(message), log);
      if (node) take(node);
    }
    if (next === null || next === undefined) return true;
    if (isFound?.()) return false;
    cursor = next;
  }
  return false;
}

async function readAllAnnouncements(options: WatchOptions, take: (node: Node) => void): Promise<boolean> {
  const isWhole = await readAnnouncements(options, undefined, take);
  if (!isWhole)
    options.log.warn(
      { pages: ANNOUNCEMENT_PAGES_MAX },
      'there are too many announcements to read; list your nodes in the settings',
    );
  return isWhole;
}

/** The newest of each: who announces itself without end hides no other, and is not read to that end. */
async function readAnnouncementsOf(
  options: WatchOptions,
  addresses: readonly string[],
  take: (node: Node) => void,
): Promise<void> {
  for (let i = 0; i < addresses.length; i += LIMITS.filterValues) {
    const some = addresses.slice(i, i + LIMITS.filterValues);
    const missing = new Set(some);
    const find = (node: Node) => {
      missing.delete(node.address);
      take(node);
    };
    if (await readAnnouncements(options, some.join(','), find, { pagesMax: some.length })) continue;
    for (const address of missing) {
      const isFound = () => !missing.has(address);
      await readAnnouncements(options, address, find, { pagesMax: OWN_PAGES_MAX, isFound });
    }
  }
}

/** Nodes that hold instances and were not read: the limits of a full read must not make them look gone. */
function listMissingNodes(view: View): string[] {
  const missing = new Set<string>();
  for (const instance of view.instances.values()) {
    const { nodeId, nodeAddress } = instance.kept ?? instance;
    if (nodeId !== null && nodeAddress !== null && !view.nodes.has(nodeId)) missing.add(nodeAddress);
  }
  return [...missing];
}

const tellUnreadable = ({ log }: WatchOptions, { message: why }: AppError) =>
  log.warn({ why }, 'the core node has an instance that cannot be read; the plan goes on without it');

/** The whole network as it is now, and the cursor from which events go on: it is older than all that is read here, so nothing falls between. */
async function readView(options: WatchOptions): Promise<{ view: View; cursor: string }> {
  const { core, allowed, listed, isKept, prepare } = options;
  await prepare();
  const view = createView();
  const { instances, unreadable, cursor } = await core.readAllInstances();
  for (const { error } of unreadable) tellUnreadable(options, error);
  for (const instance of instances) applyInstance(view, parseInstance(instance));
  await keepTakenBack(core, view, options.log);
  const take = (node: Node) => {
    if (!allowed || allowed.has(node.address)) applyNode(view, node, isKept);
  };
  if (allowed) await readAnnouncementsOf(options, [...allowed], take);
  else {
    await readAnnouncementsOf(options, [...listed], take);
    const isWhole = await readAllAnnouncements(options, take);
    // Strangers may announce more than is read: the nodes that were measured have not left.
    const known = isWhole
      ? []
      : [...options.nodes()].filter((node) => isKept(node) && !view.nodes.has(node.nodeId));
    await readAnnouncementsOf(
      options,
      known.map(({ address }) => address),
      take,
    );
    await readAnnouncementsOf(options, listMissingNodes(view), take);
  }
  return { view, cursor };
}

async function readNewest(options: WatchOptions, { nodeId, address }: Node): Promise<Node | undefined> {
  const view = createView();
  await readAnnouncementsOf(options, [address], (one) => applyNode(view, one));
  return view.nodes.get(nodeId);
}

/** An announcement was forgotten: what the node said before it counts, or the node has left. */
async function applyRemoval(itemHash: string, options: WatchOptions, watcher: Watcher): Promise<void> {
  for (const node of options.nodes()) {
    if (node.itemHash !== itemHash) continue;
    watcher.onNodeGone(node.nodeId, await readNewest(options, node));
    return;
  }
}

/**
 * Reads the announcements of nodes that were turned away while they were nothing but announced.
 *
 * @param nodeIds of nodes that have a place now
 */
export async function admitNodes(
  nodeIds: ReadonlySet<string>,
  options: WatchOptions,
  watcher: Watcher,
): Promise<void> {
  const found = new Map<string, Node>();
  await readAllAnnouncements(options, (node) => {
    if (nodeIds.has(node.nodeId)) found.set(node.nodeId, node);
  });
  for (const node of found.values()) {
    watcher.onNode(node);
    // Of what is forgotten from here on an event tells; what was forgotten meanwhile is seen here.
    const newest = await readNewest(options, node);
    if (newest?.itemHash !== node.itemHash) watcher.onNodeGone(node.nodeId, newest);
  }
}

async function applyEvent(event: NetworkEvent, options: WatchOptions, watcher: Watcher): Promise<void> {
  if (event.kind === 'instance') {
    watcher.onInstance(parseInstance(event.data));
    return;
  }
  if (event.kind === 'instance_removed') {
    watcher.onInstanceRemoved(event.data.instance_id);
    return;
  }
  if (event.kind === 'message_removed') {
    await applyRemoval(event.data.item_hash, options, watcher);
    return;
  }
  if (event.kind !== 'message') return;
  const { content_type: contentType, channel, sender, item_hash: itemHash } = event.data;
  if (contentType !== NETWORK_POST.node || channel !== NETWORK_CHANNEL.compute) return;
  if (options.allowed && !options.allowed.has(sender.toLowerCase())) return;
  try {
    const node = tryAnnouncement(await options.core.getMessage(itemHash), options.log);
    if (node) watcher.onNode(node);
  } catch (error) {
    // Forgotten since. Any other failure ends the stream, and everything is read anew.
    if (!(error instanceof AppError && error.kind === 'missing')) throw error;
  }
}

/**
 * Tells a watcher all there is and then every change, until the signal ends. Whatever goes wrong, it begins again with a full read; so it
 * does once a core node that lacked something has it.
 */
export async function watchNetwork(options: WatchOptions, watcher: Watcher): Promise<void> {
  const { core, step, signal, log } = options;
  const failures = new Failures({
    log,
    what: 'the core node could not be read; retrying',
    baseMs: REREAD_BASE_MS,
    maxMs: REREAD_MAX_MS,
  });
  const onDisconnect = (error: unknown) => {
    step.lost();
    watcher.onDisconnect(error);
  };
  while (!signal.aborted) {
    let waitMs = REREAD_BASE_MS;
    try {
      const reading = await step.begin();
      const { view, cursor } = await readView(options);
      watcher.onView(view);
      reading.done();
      failures.clear();
      const onUnreadable = (kind: string, error: AppError) => {
        if (kind === 'instance') tellUnreadable(options, error);
      };
      const until = AbortSignal.any([signal, reading.signal]);
      for await (const event of core.events({ cursor, signal: until, onDisconnect, onUnreadable }))
        await applyEvent(event, options, watcher);
    } catch (error) {
      if (signal.aborted) return;
      onDisconnect(error);
      waitMs = failures.note(error);
    }
    await pause(waitMs, signal);
  }
}
