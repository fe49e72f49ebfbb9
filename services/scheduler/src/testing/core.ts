import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type InstanceView, itemHashOf } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { SYNC_API, type SyncStatusView } from '@skerry/protocol/api/core/sync';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';

/** What a core node answers to a scheduler, for tests that play one. */

/** No node can start it: what is decided of it changes with nothing. */
export const INSTANCE: InstanceView = {
  ...{ instance_id: 'a'.repeat(64), owner: '0x1', name: 'a', description: '', cpu: 1, memory: 512, disk: 4 },
  ...{ image: 'fedora', ipv6: '', status: 'stopped', created_at: 1, updated_at: 1, ssh_key: '' },
  ...{ firewall: { allowedPorts: [] }, desired: 'running', restart_id: null, node_id: null },
  ...{ node_address: null, phase: 'scheduled', reason: null },
};

const trusts = (...value: string[]) => ({ value, source: 'setting' });
const INFO = {
  ...{ node_multi_addresses: [], name: 'core', version: '1', address: '0x1' },
  trust: {
    ...{ schedulers: trusts('0x1'), scoring_publishers: trusts(), credit_publishers: trusts() },
    ...{ known_core_nodes: trusts(), credit_enforcement: { value: false, source: 'setting' } },
  },
};

/** Of a node that has what its peers have. */
export const IN_STEP = CORE_EXAMPLES.getSyncStatus!.answer as SyncStatusView;
const PAGES = { pagination: { total: 1, page: 1, per_page: 100, total_pages: 1 }, next_cursor: null };

/** By path. */
export const answersOf = (
  instances: readonly InstanceView[],
  announcements: readonly object[] = [],
): Readonly<Record<string, object>> => ({
  [NODE_API.getInfo.path]: INFO,
  [SYNC_API.getSyncStatus.path]: IN_STEP,
  [INSTANCES_API.listInstances.path]: { instances, cursor: '5', ...PAGES },
  [NETWORK_LISTS_API.listNetworkMessages.path]: {
    messages: announcements,
    pagination_per_page: 500,
    next_cursor: null,
  },
});

export const send = (response: ServerResponse, answer: object | undefined) =>
  response
    .writeHead(answer ? 200 : 404, { 'content-type': 'application/json' })
    .end(JSON.stringify(answer ?? {}));

/** Takes a message that is sent. @returns the POST's content */
export async function takePost(request: AsyncIterable<Buffer>, response: ServerResponse) {
  const { message, address } = JSON.parse(await text(request));
  const itemHash = itemHashOf(message.chain, address, JSON.stringify(message));
  send(response, { item_hash: itemHash, status: 'success' });
  return message.content as { readonly type: string; readonly content: Readonly<Record<string, unknown>> };
}
