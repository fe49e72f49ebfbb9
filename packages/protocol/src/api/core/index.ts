import { FRONT_API, REFERENCE_API } from '../reference.ts';
import { AGGREGATES_API } from './aggregates.ts';
import { COSTS_API } from './costs.ts';
import { CREDITS_API } from './credits.ts';
import { ADDRESSES_API } from './deployed/addresses.ts';
import { DEPLOYED_DOCS_API } from './deployed/docs.ts';
import { NETWORK_LISTS_API } from './deployed/lists.ts';
import { PUBLISH_API } from './deployed/publish.ts';
import { EVENTS_API } from './events.ts';
import { INDEXER_API } from './indexer.ts';
import { INSTANCES_API } from './instances.ts';
import { IPFS_API } from './ipfs.ts';
import { MEASUREMENTS_API } from './measurements.ts';
import { MESSAGES_API } from './messages.ts';
import { NETWORK_STORAGE_API } from './network-storage.ts';
import { NODE_API } from './node.ts';
import { PROGRAMS_API } from './programs.ts';
import { REACHABILITY_API } from './reachability.ts';
import { SOCKETS_API } from './sockets.ts';
import { STATE_API } from './state.ts';
import { STORAGE_API, UPLOADS_API } from './storage.ts';
import { SYNC_API } from './sync.ts';
import { VRF_API } from './vrf.ts';
import { WEBHOOKS_API } from './webhooks.ts';

/** All that a core node does for its callers: for its server and its document. Clients import the resource that they ask for. */
export const CORE_API = {
  ...MESSAGES_API,
  ...NETWORK_LISTS_API,
  ...ADDRESSES_API,
  ...PUBLISH_API,
  ...STORAGE_API,
  ...UPLOADS_API,
  ...NETWORK_STORAGE_API,
  ...IPFS_API,
  ...AGGREGATES_API,
  ...PROGRAMS_API,
  ...INSTANCES_API,
  ...WEBHOOKS_API,
  ...MEASUREMENTS_API,
  ...CREDITS_API,
  ...COSTS_API,
  ...EVENTS_API,
  ...SOCKETS_API,
  ...STATE_API,
  ...SYNC_API,
  ...INDEXER_API,
  ...VRF_API,
  ...NODE_API,
  ...REACHABILITY_API,
  getFront: {
    ...FRONT_API.getFront,
    deployed: { differs: 'says what the node is and where its documents are, in JSON for programs' },
  },
  ...REFERENCE_API,
  ...DEPLOYED_DOCS_API,
};
