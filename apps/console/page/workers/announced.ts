import { call, type ListedMessage, verifyListed } from '@skerry/client';
import {
  AppError,
  announcedAtMs,
  fieldsOf,
  NETWORK_POST,
  nodeIdOf,
  parseIpv6Prefix,
  parseNodeUrl,
  provesNode,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { challengeAt } from './challenge.ts';
import { type JudgedFact, judgeFailure } from './facts.ts';

/** A compute node as the scheduler tells it. */
export interface AnnouncedNode {
  readonly nodeId: string;
  readonly address: string;
  readonly url: string | null;
  readonly ipv6: string | null;
}

interface Announcement {
  readonly itemHash: string;
  readonly url: string | null;
  readonly ipv6: string | null;
  readonly atMs: number;
}

/** Nodes announce themselves anew whenever something changes: the newest that are looked at. */
const ANNOUNCEMENTS_READ = 10;

const urlOf = (value: unknown) => (typeof value === 'string' ? parseNodeUrl(value) : null);
const prefixOf = (value: unknown) =>
  typeof value === 'string' && value !== '' ? parseIpv6Prefix(value) : null;

async function readAnnouncement(coreUrl: string, row: ListedMessage, nodeId: string): Promise<Announcement> {
  const { itemHash, sender, content, time } = await verifyListed({ coreUrl }, row);
  const { url, ipv6_prefix: prefix, announced_at_ms: said } = fieldsOf(fieldsOf(content).content);
  if (itemHash !== row.item_hash || nodeIdOf(sender) !== nodeId || typeof said !== 'number')
    throw new AppError('INVALID_CONTENT', `${row.item_hash} announces another node`);
  return {
    itemHash,
    url: urlOf(url),
    ipv6: prefixOf(prefix),
    atMs: announcedAtMs({ announced_at_ms: said }, time),
  };
}

/** Whether a node is where it says itself, with its own signature. */
export async function judgeAnnounced(
  question: AnnouncedNode & { readonly coreUrl: string },
): Promise<JudgedFact> {
  const { coreUrl, nodeId, address, url, ipv6 } = question;
  try {
    const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, {
      query: {
        addresses: address,
        contentTypes: NETWORK_POST.node,
        pagination: ANNOUNCEMENTS_READ,
        bodies: 'shared',
      },
    });
    const all: Announcement[] = [];
    for (const row of messages) all.push(await readAnnouncement(coreUrl, row, nodeId));
    const [newest] = all.sort((one, other) => other.atMs - one.atMs);
    if (!newest) return { kind: 'said', why: 'this core node has no announcement of it', itemHash: null };
    const { itemHash } = newest;
    return newest.url === urlOf(url) && newest.ipv6 === prefixOf(ipv6)
      ? { kind: 'proven', why: 'signed by the node itself', itemHash }
      : { kind: 'wrong', why: `the node signed ${newest.url} and ${newest.ipv6 ?? 'no range'}`, itemHash };
  } catch (error) {
    return judgeFailure(error, null);
  }
}

/** Asks a node, at its URL, to sign what this tab made up: nobody else can. */
export async function probeKey({
  nodeId,
  address,
  url,
}: Pick<AnnouncedNode, 'nodeId' | 'address'> & { readonly url: string }): Promise<JudgedFact> {
  const said = (why: string): JudgedFact => ({ kind: 'said', why, itemHash: null });
  try {
    const place = parseNodeUrl(url);
    const { status, body, challenge } = await challengeAt(place);
    if (status !== 200) return said(`it answered ${status}`);
    return provesNode(body, { nodeId, place, challenge }, address)
      ? { kind: 'proven', why: 'its key answered there, just now', itemHash: null }
      : { kind: 'wrong', why: 'what answers there does not have its key', itemHash: null };
  } catch {
    return said('it could not be asked from this page');
  }
}
