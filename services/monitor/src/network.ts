import { createHash } from 'node:crypto';
import {
  type AnnouncedNode,
  type CoreClient,
  publishMessage,
  readAggregate,
  readAnnouncements,
} from '@skerry/client';
import { NODE_LIST_KEY } from '@skerry/protocol';
import { type Answered, keyOf } from './choice.ts';
import type { HourStore, SignedReport } from './hour-store.ts';
import { distinctNodes, type MeasuredNode, parseBaseUrl, parseNodeAggregate } from './node-list.ts';

export interface NetworkOptions {
  readonly core: CoreClient;
  readonly signal: AbortSignal;
}

/** The nodes of the aggregate of a list's owner. No aggregate is no nodes. */
export async function readListedNodes(
  { core, signal }: NetworkOptions,
  owner: string,
): Promise<MeasuredNode[]> {
  return parseNodeAggregate(await readAggregate(core.url, owner, NODE_LIST_KEY, { signal }));
}

/**
 * Compute nodes that announced themselves: each where it said last. Strangers may announce more than is read: what answered lately is
 * remembered, and visited all the same.
 */
export async function listAnnouncedNodes(
  { core, signal }: NetworkOptions,
  store: Pick<HourStore, 'readAnswered' | 'readAnnounced' | 'keepAnnounced'>,
): Promise<MeasuredNode[]> {
  const [{ nodes, isWhole }, answered] = [await readAnnouncements(core, signal), await store.readAnswered()];
  const isKnown = ({ nodeId }: AnnouncedNode) => answered.has(keyOf('compute', nodeId));
  const told = new Map([...nodes.filter(isKnown), ...nodes].map((node) => [node.nodeId, node]));
  const missing = (await store.readAnnounced()).filter((node) => !told.has(node.nodeId) && isKnown(node));
  const all = [...(isWhole ? [] : missing), ...told.values()];
  await store.keepAnnounced(all.filter(isKnown));
  return distinctNodes(
    all.flatMap(({ nodeId, address, url }): MeasuredNode[] => {
      const base = parseBaseUrl(url);
      return base === undefined ? [] : [{ kind: 'compute', nodeId, url: base, address }];
    }),
  );
}

const REFERENCE_BYTES = 6_700;

/** A file of the size that monitors fetch, the same wherever it is made. */
export function makeReferenceFile(): { bytes: Buffer; hash: string } {
  const parts: Buffer[] = [Buffer.from('skerry reference file\n')];
  while (Buffer.concat(parts).length < REFERENCE_BYTES)
    parts.push(createHash('sha256').update(parts.at(-1)!).digest());
  const bytes = Buffer.concat(parts).subarray(0, REFERENCE_BYTES);
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') };
}

export async function storeReferenceFile(core: CoreClient): Promise<string> {
  const { bytes, hash } = makeReferenceFile();
  await core.storeFile(new Blob([new Uint8Array(bytes)]), 'reference', hash);
  return hash;
}

interface ListRow {
  readonly hash: string;
  readonly address: string;
}

interface ListContent {
  readonly nodes: readonly ListRow[];
  readonly resource_nodes: readonly ListRow[];
}

/** What core nodes are asked for, and keep each time that it changes: it does not grow with what strangers announce. */
const LIST_BYTES_MAX = 128 * 1024;

/**
 * A node list of the monitor's own, where the network has none: what is measured is also what the database is asked for. Of the
 * nodes that announced themselves those that answered lately; in order of id, so that it stays the same while they do.
 */
export function listContentOf(nodes: readonly MeasuredNode[], answered: Answered): ListContent {
  let room = LIST_BYTES_MAX;
  const isKnown = ({ kind, nodeId, address, isListed }: MeasuredNode) =>
    address === undefined || isListed === true || answered.has(keyOf(kind, nodeId));
  const rowsOf = (kind: MeasuredNode['kind']) =>
    nodes
      .filter((node) => node.kind === kind && isKnown(node))
      .toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
      .map(({ nodeId, url }): ListRow => ({ hash: nodeId, address: url }))
      .filter((row) => {
        const bytes = Buffer.byteLength(JSON.stringify(row));
        if (bytes > room) return false;
        room -= bytes;
        return true;
      });
  return { nodes: rowsOf('core'), resource_nodes: rowsOf('compute') };
}

export async function storeNodeList(core: CoreClient, content: ListContent): Promise<void> {
  await core.postMessage({ type: 'AGGREGATE', content: { key: NODE_LIST_KEY, content } });
}

/** Sends a report; throws what the core node said. Sent again, it is the same message. */
export async function sendReport(core: CoreClient, report: SignedReport, signal: AbortSignal): Promise<void> {
  if (report.content !== undefined)
    await core.storeFile(new Blob([report.content]), 'metrics.json', report.itemHash);
  await publishMessage(core.url, report.body, { signal });
}
