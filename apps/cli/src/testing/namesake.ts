import type { ServerResponse } from 'node:http';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import { replying } from './replying.ts';

const trusted = { value: [], source: 'unset' };
const TRUST = {
  ...{ schedulers: trusted, scoring_publishers: trusted, credit_publishers: trusted },
  ...{ known_core_nodes: trusted, credit_enforcement: { value: false, source: 'unset' } },
};
const CLOCK = { state: 'right', time_ms: 1, offset_ms: 0, clocks: 1, correction_ms: 0 };
const SYNC = {
  ...{ node_id: 'a', state: 'synced', messages: 7, behind: 0, later: 0 },
  ...{ clock: CLOCK, peers: [] },
};

/** What a compute node says of itself. */
export const NODE_CONFIG = {
  ...{ DOMAIN_NAME: 'localhost', version: '0.1.0', references: { API_SERVER: 'http://127.0.0.1:4024' } },
  ...{ security: {}, networking: {}, computing: { ACCELERATOR: 'kvm' } },
};

const refuse = (response: ServerResponse) => {
  response.statusCode = 404;
  return { error: 'there is no such path', status: 'error', code: 'ROUTE_NOT_FOUND' };
};

/** What a gateway says of itself. @param id undefined: one of an older release, which has none */
export const startGatewayNamesake = (id: string | undefined, domain = 'skerry.localhost') =>
  replying(({ pathname }, response) => {
    response.setHeader('server', 'skerry/0.1.0');
    if (pathname !== GATEWAY_API.getGatewayStatus.path) return refuse(response);
    return { instance_count: 0, route_count: 0, last_sync_time: 1, domain, ...(id && { id }) };
  });

/** What a core node with peers says of itself, for an address that it says is its own. */
export const startNamesake = (address: string) =>
  replying(({ pathname }, response) => {
    response.setHeader('server', 'skerry/0.1.0');
    if (pathname === NODE_API.getInfo.path)
      return { node_multi_addresses: [], name: 'namesake', version: '0.1.0', address, trust: TRUST };
    if (pathname === SYNC_API.getSyncStatus.path) return SYNC;
    return refuse(response);
  });
