import { parseIndexerSettings } from '@skerry/indexer';
import { alone, type Cases, refuses, refusesTooMany, succeeds } from './case.ts';

/** A chain that no endpoint answers for: its lists are empty, and say so. What a real one gives is in api/indexer.test.ts. */
export const QUIET_CHAIN = parseIndexerSettings({
  networks: [{ name: 'quiet', chain_id: 1, endpoints: ['http://127.0.0.1:9'], poll_ms: 600_000 }],
});

export const indexerCases: Cases = {
  'GET /api/v0/indexer': [succeeds('/api/v0/indexer'), refusesTooMany('/api/v0/indexer')],
  'GET /api/v0/indexer/{network}': [
    succeeds('/api/v0/indexer/quiet'),
    refuses('NETWORK_NOT_FOUND', '/api/v0/indexer/nowhere'),
  ],
  'GET /api/v0/addresses/{address}/index_requests': [
    succeeds(`/api/v0/addresses/0x${'0'.repeat(40)}/index_requests`),
    refuses('INVALID_ADDRESS', '/api/v0/addresses/nobody/index_requests'),
    // One that reads no network.
    alone(refuses('NETWORK_NOT_FOUND', `/api/v0/addresses/0x${'0'.repeat(40)}/index_requests`)),
    refusesTooMany(`/api/v0/addresses/0x${'0'.repeat(40)}/index_requests`),
  ],
  'GET /api/v0/indexer/{network}/events': [
    succeeds('/api/v0/indexer/quiet/events'),
    refuses('NETWORK_NOT_FOUND', '/api/v0/indexer/nowhere/events'),
    refuses('INVALID_PARAMETERS', '/api/v0/indexer/nowhere/events?limit=0'),
    refuses('UNKNOWN_FIELD', '/api/v0/indexer/nowhere/events?colour=red'),
  ],
  'GET /api/v0/indexer/{network}/transactions': [
    succeeds('/api/v0/indexer/quiet/transactions'),
    refuses('NETWORK_NOT_FOUND', '/api/v0/indexer/nowhere/transactions'),
    refuses('INVALID_PARAMETERS', '/api/v0/indexer/nowhere/transactions?page=x'),
  ],
};
