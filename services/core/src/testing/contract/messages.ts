import { instanceContent, signers } from '../core.ts';
import {
  answers,
  type Case,
  type Cases,
  given,
  jsonCall,
  NO_HASH,
  networkCall,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  signedCall,
  succeeds,
} from './case.ts';

const note = { type: 'POST', content: { type: 'note', content: [1, 'two', null] } };

const send = (type: string, content: object, signer = signers.alice) =>
  signedCall('/api/v0/messages', { type, content }, signer);

/** Well-formed, signed, and not to be: every verdict that a message can end in. */
const refusedByTheWorld: Case[] = [
  refuses('UNKNOWN_FIELD', () => send('POST', { type: 'note', colour: 'red' })),
  refuses('UNKNOWN_CHAIN', () => signedCall('/api/v0/messages', note, { ...signers.alice, chain: 'NONE' })),
  refuses('INVALID_ADDRESS', () => {
    const { body, ...call } = signedCall('/api/v0/messages', note);
    return { ...call, body: String(body).replace(signers.alice.address, '0x12') };
  }),
  refuses('SIGNATURE_REQUIRED', () => jsonCall('/api/v0/messages', '{"message":{}}')),
  refuses('INVALID_SSH_KEY', () => send('INSTANCE', { ...instanceContent, ssh_key: 'x' })),
  refuses('UNKNOWN_IMAGE', () => send('INSTANCE', { ...instanceContent, image: 'fedora' })),
  refuses('NOT_PERMITTED', () => send('POST', { type: 'note', address: signers.bob.address })),
  refuses('AMEND_OF_AMEND', async (core) => {
    const ref = await given.message(core);
    const { body } = await core.send(signers.alice, { type: 'POST', content: { type: 'amend', ref } });
    return send('POST', { type: 'amend', ref: body.item_hash });
  }),
  refuses('AMEND_TARGET_NOT_FOUND', async (core) =>
    send('POST', { type: 'amend', ref: await given.instance(core) }),
  ),
  refuses('FORGET_FORGET', async (core) => {
    const hashes = [await given.message(core)];
    const { body } = await core.send(signers.alice, { type: 'FORGET', content: { hashes } });
    return send('FORGET', { hashes: [body.item_hash] });
  }),
  refuses('INSTANCE_NOT_FOUND', async (core) =>
    send('INSTANCE_CONTROL', { instance_id: await given.message(core), action: 'stop' }),
  ),
  refuses('MESSAGE_FORGOTTEN', async (core) =>
    send('POST', { type: 'amend', ref: await given.forgotten(core) }),
  ),
  answers(202, () => send('FORGET', { hashes: [NO_HASH] })),
  answers(202, () => send('POST', { type: 'amend', ref: NO_HASH })),
  answers(202, () => send('INSTANCE_CONTROL', { instance_id: NO_HASH, action: 'stop' })),
];

const networkNote = { type: 'POST', content: { type: 'note', content: { text: 'n' } } };
const refusedInTheNetworkForm = (change: (message: Record<string, unknown>) => void) =>
  refuses(422, () => {
    const { body, ...call } = networkCall(networkNote);
    const { message } = JSON.parse(String(body));
    change(message);
    return { ...call, body: JSON.stringify({ message }) };
  });

const inTheNetworkForm: Case[] = [
  succeeds(() => networkCall(networkNote)),
  answers(202, () => networkCall({ type: 'STORE', content: { item_type: 'storage', item_hash: NO_HASH } })),
  refusedInTheNetworkForm((message) => {
    message.signature = `0x${'11'.repeat(65)}`;
  }),
  refusedInTheNetworkForm((message) => {
    message.item_content += ' ';
  }),
  refusedInTheNetworkForm((message) => {
    message.chain = 'NONE';
  }),
  refuses(422, () => networkCall({ type: 'POST', content: { type: 'note', colour: 'red' } })),
  refuses(422, () => networkCall({ type: 'POST', content: { type: 'note', address: signers.bob.address } })),
  refuses('MESSAGE_FORGOTTEN', async (core) => {
    const call = networkCall(networkNote);
    const { body } = await core.post('/messages', String(call.body));
    await core.send(signers.alice, { type: 'FORGET', content: { hashes: [body.item_hash] } });
    await core.rooms.pipeline.idle();
    return call;
  }),
];

export const messageCases: Cases = {
  'POST /api/v0/messages': [
    succeeds(() => signedCall('/api/v0/messages', note)),
    succeeds(async (core) => {
      const call = signedCall('/api/v0/messages', note);
      await core.post('/messages', String(call.body));
      return call;
    }),
    refuses('INVALID_JSON', () => jsonCall('/api/v0/messages', '{')),
    refuses('INVALID_ENVELOPE', () =>
      jsonCall('/api/v0/messages', '{"message":{},"signature":"0x00","address":"0x00"}'),
    ),
    refuses('UNKNOWN_MESSAGE_TYPE', () => signedCall('/api/v0/messages', { type: 'NONE', content: {} })),
    refuses('INVALID_CONTENT', () => signedCall('/api/v0/messages', { type: 'POST', content: {} })),
    answers(202, () =>
      signedCall('/api/v0/messages', {
        type: 'STORE',
        content: { item_type: 'storage', item_hash: NO_HASH },
      }),
    ),
    refuses('TIMESTAMP_IN_FUTURE', () =>
      signedCall('/api/v0/messages', { ...note, timestamp: Math.floor(Date.now() / 1000) + 3600 }),
    ),
    refuses('INVALID_SIGNATURE', () => {
      const { body, ...call } = signedCall('/api/v0/messages', note);
      return { ...call, body: String(body).replace('two', 'TWO') };
    }),
    ...refusedByTheWorld,
    ...inTheNetworkForm,
    refusesWithoutDatabase(() => signedCall('/api/v0/messages', note)),
    refuses('BODY_TOO_LARGE', () => jsonCall('/api/v0/messages', ' '.repeat(1024 * 1024 + 1))),
    refuses('UNSUPPORTED_MEDIA_TYPE', () => ({
      ...jsonCall('/api/v0/messages', '{}'),
      headers: { 'content-type': 'image/png' },
    })),
  ],
  'GET /api/v0/messages': [
    succeeds('/api/v0/messages'),
    succeeds(async (core) => ({ path: `/api/v0/messages?hashes=${await given.message(core)}&limit=1` })),
    ...['page=0', 'limit=101', 'limit=x', 'addresses='].map((query) =>
      refuses('INVALID_PARAMETERS', `/api/v0/messages?${query}`),
    ),
    succeeds('/api/v0/messages?content.keys=content.text,items[*].id,%5B"two words"%5D&tags=a,b'),
    succeeds('/api/v0/messages?types=POST,STORE&channels=skerry&cursor='),
    ...['content.keys=a..b', 'content.keys=%24', 'types=NONE', 'tags=a%00', 'page=2&cursor='].map((query) =>
      refuses('INVALID_PARAMETERS', `/api/v0/messages?${query}`),
    ),
    refuses('INVALID_CURSOR', '/api/v0/messages?cursor=x'),
    refusesWithoutDatabase('/api/v0/messages'),
    refuses('UNKNOWN_FIELD', '/api/v0/messages?colour=red'),
    refuses('INVALID_HASH', '/api/v0/messages?hashes=abc'),
    refusesTooMany('/api/v0/messages'),
  ],
  'GET /api/v0/messages/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.message(core)}` })),
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.message(core)}?bodies=shared` })),
    refuses('MESSAGE_NOT_FOUND', `/api/v0/messages/${NO_HASH}`),
    refuses('INVALID_HASH', '/api/v0/messages/abc'),
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.pending(core)}` })),
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.forgotten(core)}` })),
    succeeds(async (core) => {
      const { body } = await core.post('/messages', String(networkCall(networkNote).body));
      return { path: `/api/v0/messages/${body.item_hash}` };
    }),
    refusesWithoutDatabase(`/api/v0/messages/${NO_HASH}`),
  ],
  'GET /api/v0/messages/{hash}/status': [
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.message(core)}/status` })),
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.pending(core)}/status` })),
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.forgotten(core)}/status` })),
    refuses('MESSAGE_NOT_FOUND', `/api/v0/messages/${NO_HASH}/status`),
    refuses('INVALID_HASH', '/api/v0/messages/abc/status'),
    refusesTooMany(`/api/v0/messages/${NO_HASH}/status`),
    refusesWithoutDatabase(`/api/v0/messages/${NO_HASH}/status`),
  ],
  'GET /api/v0/messages/{hash}/content': [
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.message(core)}/content` })),
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.instance(core)}/content` })),
    refuses('MESSAGE_NOT_PROCESSED', async (core) => ({
      path: `/api/v0/messages/${await given.pending(core)}/content`,
    })),
    refuses('MESSAGE_FORGOTTEN', async (core) => ({
      path: `/api/v0/messages/${await given.forgotten(core)}/content`,
    })),
    refuses('MESSAGE_NOT_FOUND', `/api/v0/messages/${NO_HASH}/content`),
    refuses('INVALID_HASH', '/api/v0/messages/abc/content'),
    refusesWithoutDatabase(`/api/v0/messages/${NO_HASH}/content`),
  ],
};
