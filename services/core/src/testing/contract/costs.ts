import { OPERATOR_TOKEN, signers, type TestCore } from '../core.ts';
import { type Call, type Cases, given, jsonCall, NO_HASH, refuses, succeeds } from './case.ts';

const ADDRESS = signers.alice.address;
const COSTS = '/api/v0/costs';
const ESTIMATE = '/api/v0/price/estimate';
const RECALCULATE = '/api/v0/price/recalculate';

/** An instance as deployed clients ask what it costs: whom it belongs to is known, and how to log in is not. */
export const networkInstance = {
  address: ADDRESS,
  time: 1_700_000_000,
  allow_amend: false,
  environment: { internet: true, aleph_api: true },
  resources: { vcpus: 1, memory: 2_048, seconds: 30 },
  rootfs: { parent: { ref: 'debian:12', use_latest: true }, persistence: 'host', size_mib: 20_480 },
  volumes: [],
};

const estimateOf = (type: string, content: unknown): Call =>
  jsonCall(
    ESTIMATE,
    JSON.stringify({
      message: {
        type,
        item_type: 'inline',
        item_hash: NO_HASH,
        item_content: content === undefined ? null : JSON.stringify(content),
      },
    }),
  );

const recalculate = (path: string, token: string | undefined): Call => ({
  ...jsonCall(path, ''),
  headers: token === undefined ? {} : { 'x-auth-token': token },
});

const misused = (...queries: string[]) =>
  queries.map((query) => refuses('INVALID_PARAMETERS', `${COSTS}?${query}`));

const priceOf = (make: (core: TestCore) => Promise<string>, query = '') =>
  succeeds(async (core) => ({ path: `/api/v0/price/${await make(core)}${query}` }));

const file = { address: ADDRESS, time: 1_700_000_000, item_type: 'storage', item_hash: NO_HASH };

export const costCases: Cases = {
  'GET /api/v0/costs': [
    succeeds(async (core) => {
      await given.instance(core);
      return { path: `${COSTS}?address=${ADDRESS}&include_details=2&include_size=True` };
    }),
    succeeds(COSTS),
    succeeds(`${COSTS}?item_hash=${NO_HASH}&payment_type=hold&include_details=1&pagination=1000&page=2`),
    refuses('INVALID_HASH', `${COSTS}?item_hash=abc`),
    refuses('INVALID_ADDRESS', `${COSTS}?address=abc`),
    ...misused('address=', 'pagination=0', 'pagination=1001', 'include_details=3', 'include_size=maybe'),
  ],
  'GET /api/v0/price/{item_hash}': [
    priceOf(given.instance),
    priceOf(given.program, '?include_size=true'),
    priceOf(given.stored),
    refuses('COST_NOT_FOUND', `/api/v0/price/${NO_HASH}`),
    refuses('MESSAGE_FORGOTTEN', async (core) => ({ path: `/api/v0/price/${await given.forgotten(core)}` })),
    refuses('INVALID_HASH', '/api/v0/price/abc'),
  ],
  'POST /api/v0/price/estimate': [
    succeeds(() => estimateOf('INSTANCE', networkInstance)),
    succeeds(() => estimateOf('STORE', { ...file, estimated_size_mib: 30 })),
    refuses('FILE_NOT_FOUND', () => estimateOf('STORE', file)),
    refuses('CONTENT_NOT_FOUND', () => estimateOf('STORE', undefined)),
    refuses('INVALID_CONTENT', () => estimateOf('PROGRAM', { address: ADDRESS })),
    refuses('INVALID_PARAMETERS', () => estimateOf('POST', {})),
  ],
  'POST /api/v0/price/estimate/instance': [
    succeeds(() => jsonCall(`${ESTIMATE}/instance`, JSON.stringify(networkInstance))),
    refuses('UNKNOWN_FIELD', () =>
      jsonCall(`${ESTIMATE}/instance`, JSON.stringify({ ...networkInstance, colour: 'red' })),
    ),
  ],
  'POST /api/v0/price/recalculate': [
    succeeds(() => recalculate(RECALCULATE, OPERATOR_TOKEN)),
    refuses('CREDENTIAL_REQUIRED', () => recalculate(RECALCULATE, undefined)),
    refuses('CREDENTIAL_REFUSED', () => recalculate(RECALCULATE, 'of somebody')),
    refuses('INVALID_JSON', () => jsonCall(RECALCULATE, '{')),
  ],
  'POST /api/v0/price/{item_hash}/recalculate': [
    succeeds(async (core) =>
      recalculate(`/api/v0/price/${await given.instance(core)}/recalculate`, OPERATOR_TOKEN),
    ),
    refuses('COST_NOT_FOUND', () => recalculate(`/api/v0/price/${NO_HASH}/recalculate`, OPERATOR_TOKEN)),
  ],
  'GET /api/v0/messages/{hash}/consumed_credits': [
    succeeds(async (core) => ({
      path: `/api/v0/messages/${await given.instance(core)}/consumed_credits`,
    })),
    refuses('MESSAGE_NOT_FOUND', `/api/v0/messages/${NO_HASH}/consumed_credits`),
    refuses('INVALID_HASH', '/api/v0/messages/abc/consumed_credits'),
  ],
};
