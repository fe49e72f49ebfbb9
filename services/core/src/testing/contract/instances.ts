import { instanceContent, signers } from '../core.ts';
import { type Cases, given, NO_HASH, refuses, refusesWithoutDatabase, signedCall, succeeds } from './case.ts';

const control = (instance_id: string, action = 'stop') => ({
  type: 'INSTANCE_CONTROL',
  content: { instance_id, action },
});
const update = (instance_id: string, name: unknown = 'other') => ({
  type: 'INSTANCE_UPDATE',
  content: { instance_id, name },
});

export const instanceCases: Cases = {
  'POST /api/v0/instances': [
    succeeds(() => signedCall('/api/v0/instances', { type: 'INSTANCE', content: instanceContent })),
    refuses('INVALID_CONTENT', () =>
      signedCall('/api/v0/instances', { type: 'INSTANCE', content: { ...instanceContent, cpu: 0 } }),
    ),
    refuses('INVALID_SSH_KEY', () =>
      signedCall('/api/v0/instances', { type: 'INSTANCE', content: { ...instanceContent, ssh_key: 'x' } }),
    ),
    refuses('UNKNOWN_IMAGE', () =>
      signedCall('/api/v0/instances', { type: 'INSTANCE', content: { ...instanceContent, image: 'fedora' } }),
    ),
    refuses('UNKNOWN_MESSAGE_TYPE', () => signedCall('/api/v0/instances', control(NO_HASH))),
  ],
  'GET /api/v0/instances': [
    succeeds(async (core) => {
      await given.instance(core);
      return { path: `/api/v0/instances?address=${signers.alice.address}&status=stopped` };
    }),
    refuses('INVALID_PARAMETERS', '/api/v0/instances?status=sleeping'),
    refuses('INVALID_HASH', '/api/v0/instances?node_id=abc'),
  ],
  'GET /api/v0/instances/{instance_id}': [
    succeeds(async (core) => ({ path: `/api/v0/instances/${await given.instance(core)}` })),
    refuses('INSTANCE_NOT_FOUND', `/api/v0/instances/${NO_HASH}`),
    refuses('INVALID_HASH', '/api/v0/instances/abc'),
  ],
  'PUT /api/v0/instances/{instance_id}': [
    succeeds(async (core) => {
      const id = await given.instance(core);
      return signedCall(`/api/v0/instances/${id}`, update(id));
    }),
    refuses('NOT_PERMITTED', async (core) => {
      const id = await given.instance(core);
      return signedCall(`/api/v0/instances/${id}`, update(id), signers.bob);
    }),
    refuses('INSTANCE_NOT_FOUND', () => signedCall(`/api/v0/instances/${NO_HASH}`, update(NO_HASH))),
    refuses('INVALID_HASH', () => signedCall('/api/v0/instances/abc', update(NO_HASH))),
    refuses('ID_MISMATCH', async (core) =>
      signedCall(`/api/v0/instances/${await given.instance(core)}`, update(NO_HASH)),
    ),
    refuses('INVALID_CONTENT', async (core) => {
      const id = await given.instance(core);
      return signedCall(`/api/v0/instances/${id}`, update(id, ''));
    }),
    refusesWithoutDatabase(() => signedCall(`/api/v0/instances/${NO_HASH}`, update(NO_HASH))),
  ],
  'POST /api/v0/instances/{instance_id}/control': [
    succeeds(async (core) => {
      const id = await given.instance(core);
      return signedCall(`/api/v0/instances/${id}/control`, control(id));
    }),
    refuses('INSTANCE_NOT_FOUND', () => signedCall(`/api/v0/instances/${NO_HASH}/control`, control(NO_HASH))),
    refuses('NOT_PERMITTED', async (core) => {
      const id = await given.instance(core);
      return signedCall(`/api/v0/instances/${id}/control`, control(id), signers.bob);
    }),
    refuses('ID_MISMATCH', async (core) =>
      signedCall(`/api/v0/instances/${await given.instance(core)}/control`, control(NO_HASH)),
    ),
    refuses('INVALID_CONTENT', async (core) => {
      const id = await given.instance(core);
      return signedCall(`/api/v0/instances/${id}/control`, control(id, 'explode'));
    }),
    refuses('MESSAGE_FORGOTTEN', async (core) => {
      const id = await given.instance(core);
      const call = signedCall(`/api/v0/instances/${id}/control`, control(id));
      const { body } = await core.post(`/instances/${id}/control`, String(call.body));
      await core.send(signers.alice, { type: 'FORGET', content: { hashes: [body.item_hash] } });
      await core.rooms.pipeline.idle();
      return call;
    }),
  ],
};
