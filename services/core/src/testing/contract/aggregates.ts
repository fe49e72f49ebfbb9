import { signers } from '../core.ts';
import {
  type Cases,
  given,
  jsonCall,
  NO_HASH,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  signedCall,
  succeeds,
} from './case.ts';

const AGGREGATES = '/api/v0/aggregates';
const ofAlice = `${AGGREGATES}/${signers.alice.address}`;
const element = (content: object) => ({ type: 'AGGREGATE', content: { key: 'contract', content } });
const having = (path: string) =>
  succeeds(async (core) => {
    await given.aggregate(core);
    return { path };
  });

export const aggregateCases: Cases = {
  'POST /api/v0/aggregates': [
    succeeds(() => signedCall(AGGREGATES, element({ a: { b: [null] } }))),
    refuses('INVALID_CONTENT', () =>
      signedCall(AGGREGATES, { type: 'AGGREGATE', content: { key: '', content: {} } }),
    ),
    refuses('INVALID_CONTENT', () => signedCall(AGGREGATES, element({ ['x'.repeat(257)]: 1 }))),
    refuses('UNKNOWN_FIELD', () =>
      signedCall(AGGREGATES, { type: 'AGGREGATE', content: { key: 'k', content: {}, colour: 'red' } }),
    ),
    refuses('UNKNOWN_MESSAGE_TYPE', () => signedCall(AGGREGATES, { type: 'POST', content: { type: 'x' } })),
    refuses('NOT_PERMITTED', () =>
      signedCall(AGGREGATES, {
        type: 'AGGREGATE',
        content: { key: 'contract', content: { a: 1 }, address: signers.bob.address },
      }),
    ),
    refuses('SIGNATURE_REQUIRED', () => jsonCall(AGGREGATES, '{"message":{}}')),
    refuses('MESSAGE_FORGOTTEN', async (core) => {
      const call = signedCall(AGGREGATES, element({ gone: true }));
      const { body } = await core.post('/aggregates', String(call.body));
      await core.send(signers.alice, { type: 'FORGET', content: { hashes: [body.item_hash] } });
      await core.rooms.pipeline.idle();
      return call;
    }),
    refusesWithoutDatabase(() => signedCall(AGGREGATES, element({ a: 1 }))),
  ],
  'GET /api/v0/aggregates/{address}/{key}': [
    having(`${ofAlice}/contract`),
    having(`${ofAlice.replace('0x', '0X').toUpperCase().replace('/API/V0/AGGREGATES', AGGREGATES)}/contract`),
    refuses('AGGREGATE_NOT_FOUND', `${ofAlice}/none`),
    refuses('AGGREGATE_NOT_FOUND', `${ofAlice}/${'k'.repeat(256)}`),
    refuses('INVALID_PARAMETERS', `${ofAlice}/%00`),
    refusesWithoutDatabase(`${ofAlice}/contract`),
  ],
  'GET /api/v0/aggregates': [
    having(AGGREGATES),
    having(
      `${AGGREGATES}?address=${signers.alice.address}&key=contract&content.fields=name,%5B"two words"%5D`,
    ),
    having(`${AGGREGATES}?keys=contract,other&limit=1&page=2`),
    having(
      `${AGGREGATES}?addresses=${signers.alice.address}&pagination=500&sortBy=creation_time&sortOrder=1`,
    ),
    refuses('INVALID_PARAMETERS', `${AGGREGATES}?limit=5&pagination=5`),
    refuses('INVALID_PARAMETERS', `${AGGREGATES}?address=a&addresses=b`),
    refuses('INVALID_PARAMETERS', `${AGGREGATES}?page=0`),
    refuses('INVALID_PARAMETERS', `${AGGREGATES}?limit=101`),
    refuses('INVALID_PARAMETERS', `${AGGREGATES}?content.fields=a..b`),
    refuses('INVALID_CURSOR', `${AGGREGATES}?cursor=x`),
    refuses('UNKNOWN_FIELD', `${AGGREGATES}?colour=red`),
    refusesTooMany(AGGREGATES),
    refusesWithoutDatabase(AGGREGATES),
  ],
  'GET /api/v0/aggregates.json': [
    having(`${AGGREGATES}.json`),
    having(`${AGGREGATES}.json?keys=contract&pagination=0&sortBy=creation_time`),
    having(`${AGGREGATES}.json?cursor=&pagination=1`),
    refuses('INVALID_PARAMETERS', `${AGGREGATES}.json?sortBy=size`),
    refuses('INVALID_CURSOR', `${AGGREGATES}.json?cursor=x`),
  ],
  'GET /api/v0/aggregates/{address}.json': [
    having(`${ofAlice}.json`),
    having(`${ofAlice}.json?keys=contract&limit=50&with_info=true`),
    having(`${ofAlice}.json?keys=contract&value_only=true`),
    having(`${ofAlice}.json?keys=contract&value_only=True&with_info=False`),
    refuses('INVALID_PARAMETERS', `${ofAlice}.json?with_info=perhaps`),
    refuses('AGGREGATE_NOT_FOUND', `${AGGREGATES}/0x${NO_HASH.slice(24)}.json`),
    refuses('AGGREGATE_NOT_FOUND', `${ofAlice}.json?keys=none`),
    refuses('INVALID_PARAMETERS', `${ofAlice}.json?limit=0`),
    refusesWithoutDatabase(`${ofAlice}.json`),
  ],
};
