import { buildNetworkMessage } from '@skerry/client';
import { signers, type TestCore } from '../core.ts';
import {
  type Call,
  type Case,
  type Cases,
  given,
  jsonCall,
  NO_HASH,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  succeeds,
} from './case.ts';

/** What deployed nodes answer beside the specification's routes. */

const ADDRESS = signers.alice.address;
const of = (path: string) => `/api/v0/addresses/${ADDRESS}/${path}`;

const having = (make: (core: TestCore) => Promise<unknown>, path: string): Case =>
  succeeds(async (core) => {
    await make(core);
    return { path };
  });

const misused = (path: string, ...queries: string[]): Case[] =>
  queries.map((query) => refuses('INVALID_PARAMETERS', `${path}?${query}`));

const permissions = { authorizations: [{ address: signers.bob.address, types: ['POST'], channels: [] }] };
const permitted = (core: TestCore) =>
  core.send(signers.alice, {
    type: 'AGGREGATE',
    channel: 'security',
    content: { key: 'security', content: permissions },
  });

const publish = (path: string, data: unknown, topic = 'ALEPH-TEST'): Call =>
  jsonCall(path, JSON.stringify({ topic, data }));
const networkMessage = (signature?: string) => {
  const draft = { type: 'POST', content: { type: 'note', content: { published: true } } };
  const { message } = JSON.parse(buildNetworkMessage(draft, signers.alice).body) as { message: object };
  return signature === undefined ? message : { ...message, signature };
};
const publishCases = (path: string): Case[] => [
  succeeds(() => publish(path, JSON.stringify(networkMessage()))),
  succeeds(() => publish(path, networkMessage())),
  refuses('NOT_PERMITTED', () => publish(path, networkMessage(), 'ELSEWHERE')),
  refuses('INVALID_PARAMETERS', () => publish(path, 7)),
  refuses('INVALID_JSON', () => publish(path, '{')),
  refuses('INVALID_ENVELOPE', () => publish(path, {})),
  refuses(422, () => publish(path, networkMessage(`0x${'11'.repeat(65)}`))),
  refusesWithoutDatabase(() => publish(path, networkMessage())),
];

export const deployedCases: Cases = {
  'GET /api/v0/addresses/{address}/files': [
    having(given.stored, of('files')),
    having(given.stored, `${of('files')}?file_hash=${NO_HASH}&sortOrder=1&pagination=0&page=2`),
    ...misused(of('files'), 'page=0', 'sort_order=1&sortOrder=-1', 'pagination=10001'),
    refuses('INVALID_HASH', `${of('files')}?file_hash=abc`),
    refusesTooMany(of('files')),
  ],
  'GET /api/v0/addresses/{address}/post_types': [
    having(given.message, of('post_types')),
    refusesWithoutDatabase(of('post_types')),
  ],
  'GET /api/v0/addresses/{address}/channels': [
    having(given.message, of('channels')),
    refusesWithoutDatabase(of('channels')),
  ],
  'GET /api/v0/addresses/stats.json': [
    having(given.message, `/api/v0/addresses/stats.json?addresses[]=${ADDRESS}&addresses[]=nobody`),
    having(given.message, `/api/v0/addresses/stats.json?addresses=${ADDRESS},nobody`),
    having(given.message, '/api/v0/addresses/stats.json'),
    ...misused('/api/v0/addresses/stats.json', 'addresses=', `addresses=${'a,'.repeat(100)}a`),
  ],
  'GET /api/v1/addresses/stats.json': [
    having(given.message, '/api/v1/addresses/stats.json?addressContains=0X&sortBy=POST&sortOrder=1'),
    having(given.message, '/api/v1/addresses/stats.json?pagination=0'),
    ...misused('/api/v1/addresses/stats.json', 'sortBy=SIZE', 'pagination=101'),
  ],
  'GET /api/v0/balances': [
    succeeds('/api/v0/balances?chains=ETH&min_balance=1&pagination=0&cursor='),
    ...misused('/api/v0/balances', 'minBalance=-1', 'min_balance=1&minBalance=2'),
  ],
  'GET /api/v0/credit_balances': [
    succeeds('/api/v0/credit_balances?min_balance=0.5'),
    succeeds('/api/v0/credit_balances?cursor=&pagination=1'),
    refuses('INVALID_CURSOR', '/api/v0/credit_balances?cursor=x'),
  ],
  'GET /api/v0/addresses/{address}/credit_history/summary': [
    succeeds(of('credit_history/summary?direction=incoming&token=USDC&exclude_payment_method=card')),
    ...misused(of('credit_history/summary'), 'direction=up', 'startDate=5&endDate=4'),
  ],
  'GET /api/v0/authorizations/granted/{address}.json': [
    having(permitted, `/api/v0/authorizations/granted/${ADDRESS}.json?grantee=${signers.bob.address}`),
    having(permitted, `/api/v0/authorizations/granted/${ADDRESS}.json?types=STORE&chains=ETH&channels=a`),
    ...misused(`/api/v0/authorizations/granted/${ADDRESS}.json`, 'page=0', 'types='),
  ],
  'GET /api/v0/authorizations/received/{address}.json': [
    having(permitted, `/api/v0/authorizations/received/${signers.bob.address}.json?granter=${ADDRESS}`),
    ...misused(`/api/v0/authorizations/received/${ADDRESS}.json`, 'pagination=-1'),
  ],
  'GET /api/v0/channels/list.json': [
    having(given.message, '/api/v0/channels/list.json'),
    refusesTooMany('/api/v0/channels/list.json'),
  ],
  'GET /api/v0/programs/on/message': [
    having(given.program, '/api/v0/programs/on/message?sort_order=1'),
    ...misused('/api/v0/programs/on/message', 'sort_order=0'),
  ],
  'GET /version': [succeeds('/version'), refusesTooMany('/version')],
  'POST /api/v0/p2p/pubsub/pub': publishCases('/api/v0/p2p/pubsub/pub'),
  'POST /api/v0/ipfs/pubsub/pub': publishCases('/api/v0/ipfs/pubsub/pub'),
};
