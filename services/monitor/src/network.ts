import { createHash } from 'node:crypto';
import { type CoreClient, publishMessage, readAggregate, readAnnouncedNodes } from '@skerry/client';
import type { SignedReport } from './hour-store.ts';
import { distinctNodes, type MeasuredNode, parseBaseUrl, parseNodeAggregate } from './node-list.ts';

const NODE_LIST_KEY = 'corechannel';

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

/** Compute nodes that announced themselves: each where it said last. */
export async function listAnnouncedNodes({ core, signal }: NetworkOptions): Promise<MeasuredNode[]> {
  const announced = await readAnnouncedNodes(core, signal);
  return distinctNodes(
    announced.flatMap(({ nodeId, address, url }): MeasuredNode[] => {
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

/** A node list of the monitor's own, where the network has none: what is measured is also what the database is asked for. */
export async function storeNodeList(core: CoreClient, nodes: readonly MeasuredNode[]): Promise<void> {
  const rowsOf = (kind: MeasuredNode['kind']) =>
    nodes.filter((node) => node.kind === kind).map(({ nodeId, url }) => ({ hash: nodeId, address: url }));
  const content = { nodes: rowsOf('core'), resource_nodes: rowsOf('compute') };
  await core.postMessage({ type: 'AGGREGATE', content: { key: NODE_LIST_KEY, content } });
}

/** Sends a report; throws what the core node said. Sent again, it is the same message. */
export async function sendReport(core: CoreClient, report: SignedReport, signal: AbortSignal): Promise<void> {
  if (report.content !== undefined)
    await core.storeFile(new Blob([report.content]), 'metrics.json', report.itemHash);
  await publishMessage(core.url, report.body, { signal });
}
