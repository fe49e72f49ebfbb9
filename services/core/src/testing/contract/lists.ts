import { signers } from '../core.ts';
import {
  type Case,
  type Cases,
  given,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  succeeds,
} from './case.ts';

const FILTERS = 'channels=skerry&tags=a,b&startDate=0&endDate=9000000000&sortOrder=1&refs=x';

/** What the lists of deployed nodes have in common. */
const listCasesOf = (path: string): Case[] => [
  succeeds(async (core) => {
    await given.message(core);
    return { path: `${path}?addresses=${signers.alice.address}&pagination=1&page=1` };
  }),
  succeeds(`${path}?cursor=`),
  succeeds(`${path}?${FILTERS}`),
  succeeds(`${path}?pagination=10000`),
  succeeds(`${path}?pagination=0&sortBy=tx-time`),
  refuses('INVALID_PARAMETERS', `${path}?pagination=500&limit=100`),
  refuses('INVALID_PARAMETERS', `${path}?pagination=10001`),
  refuses('INVALID_PARAMETERS', `${path}?pagination=0&cursor=`),
  refuses('INVALID_PARAMETERS', `${path}?pagination=x`),
  refuses('INVALID_PARAMETERS', `${path}?page=0`),
  refuses('INVALID_PARAMETERS', `${path}?sortOrder=0`),
  refuses('INVALID_PARAMETERS', `${path}?startDate=-1`),
  refuses('INVALID_PARAMETERS', `${path}?startDate=5&endDate=4`),
  refuses('INVALID_PARAMETERS', `${path}?startDate=1790000000000`),
  refuses('INVALID_PARAMETERS', `${path}?channels=a%00b`),
  refuses('INVALID_HASH', `${path}?hashes=abc`),
  refuses('INVALID_CURSOR', `${path}?cursor=x`),
  refusesTooMany(path),
  refusesWithoutDatabase(path),
];

/** The same where the address names the page. */
const pageCasesOf = (path: string): Case[] => [
  succeeds(`${path}/2.json?pagination=1&sortOrder=1`),
  refuses('INVALID_PARAMETERS', `${path}/0.json`),
  refuses('UNKNOWN_FIELD', `${path}/1.json?page=1`),
];

export const listCases: Cases = {
  'GET /api/v0/messages.json': [
    ...listCasesOf('/api/v0/messages.json'),
    succeeds('/api/v0/messages.json?msgTypes=POST,STORE&contentTypes=note&owners=x&chains=ETH'),
    succeeds('/api/v0/messages.json?msgType=POST&content_types=net-network-metrics'),
    refuses('INVALID_PARAMETERS', '/api/v0/messages.json?msgTypes=NONE'),
    refuses('INVALID_PARAMETERS', '/api/v0/messages.json?contentTypes=a&content_types=b'),
    succeeds(
      '/api/v0/messages.json?contentKeys=a&paymentTypes=hold&msgStatuses=pending&contentFormat=headers',
    ),
    refuses('INVALID_PARAMETERS', '/api/v0/messages.json?msgStatuses=processed,forgotten'),
  ],
  'GET /api/v0/messages/page/{page}.json': pageCasesOf('/api/v0/messages/page'),
  'GET /api/v0/messages/hashes': [
    succeeds(async (core) => {
      await given.message(core);
      return { path: '/api/v0/messages/hashes' };
    }),
    succeeds('/api/v0/messages/hashes?hash_only=False&status=processed&pagination=0&startDate=1&endDate=0'),
    refuses('INVALID_PARAMETERS', '/api/v0/messages/hashes?status=lost'),
  ],
  'GET /api/v0/posts/page/{page}.json': pageCasesOf('/api/v0/posts/page'),
  'GET /api/v1/posts.json': listCasesOf('/api/v1/posts.json'),
  'GET /api/v1/posts/page/{page}.json': pageCasesOf('/api/v1/posts/page'),
  'GET /api/v0/posts.json': [...listCasesOf('/api/v0/posts.json'), succeeds('/api/v0/posts.json?types=note')],
};
