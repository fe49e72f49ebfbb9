import {
  answers,
  type Cases,
  given,
  jsonCall,
  NO_HASH,
  refuses,
  refusesTooMany,
  signedCall,
  succeeds,
} from './case.ts';

const note = { type: 'POST', content: { type: 'note', content: [1, 'two', null] } };

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
    refuses('UNKNOWN_FIELD', '/api/v0/messages?colour=red'),
    refuses('INVALID_HASH', '/api/v0/messages?hashes=abc'),
    refusesTooMany('/api/v0/messages'),
  ],
  'GET /api/v0/messages/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/messages/${await given.message(core)}` })),
    refuses('MESSAGE_NOT_FOUND', `/api/v0/messages/${NO_HASH}`),
    refuses('INVALID_HASH', '/api/v0/messages/abc'),
  ],
};
