import { signers, type TestCore } from '../core.ts';
import { type Call, type Case, type Cases, NO_HASH, refuses, signedCall, succeeds } from './case.ts';

const PATH = '/api/v0/webhooks';
/** 8.8.8.8 is public; nothing is delivered in this suite. */
const content = {
  url: 'https://8.8.8.8/hook',
  events: ['message.new'],
  secret: 'a secret',
  filters: { channels: ['contract'] },
};
const registration = (more: Readonly<Record<string, unknown>> = {}, signer = signers.alice): Call =>
  signedCall(PATH, { type: 'WEBHOOK', content: { ...content, ...more } }, signer);

async function givenWebhook(core: TestCore): Promise<string> {
  const { headers, body, path } = registration();
  const answer = await core.api.inject({
    method: 'POST',
    url: path,
    headers: { ...headers },
    payload: body ?? '',
  });
  return answer.json<{ webhook_id: string }>().webhook_id;
}

const request = (
  webhookId: string,
  action: string,
  more: Readonly<Record<string, unknown>> = {},
  signer = signers.alice,
  timestamp = Math.floor(Date.now() / 1000),
): Call =>
  signedCall(
    `${PATH}/${webhookId}/${action}`,
    { type: 'WEBHOOK', timestamp, content: { action, webhook_id: webhookId, ...more } },
    signer,
  );

/** What every request about one webhook does and refuses. */
const about = (action: string, more: Readonly<Record<string, unknown>> = {}): Case[] => [
  succeeds(async (core) => request(await givenWebhook(core), action, more)),
  refuses('WEBHOOK_NOT_FOUND', () => request(NO_HASH, action, more)),
  refuses('WEBHOOK_NOT_FOUND', async (core) => request(await givenWebhook(core), action, more, signers.bob)),
  refuses('ID_MISMATCH', () => {
    const call = request('1'.repeat(64), action, more);
    return { ...call, path: `${PATH}/${NO_HASH}/${action}` };
  }),
  refuses('TIMESTAMP_TOO_OLD', () =>
    request(NO_HASH, action, more, signers.alice, Math.floor(Date.now() / 1000) - 400),
  ),
  refuses('REQUEST_REPEATED', async (core) => {
    const call = request(await givenWebhook(core), action, more);
    const { path: url, headers = {}, body = '' } = call;
    await core.api.inject({ method: 'POST', url, headers: { ...headers }, payload: body });
    return call;
  }),
];

const paused = async (core: TestCore, action: string, more: Readonly<Record<string, unknown>> = {}) => {
  const id = await givenWebhook(core);
  const { path: url, headers = {}, body = '' } = request(id, 'pause');
  await core.api.inject({ method: 'POST', url, headers: { ...headers }, payload: body });
  return request(id, action, more);
};

export const webhookCases: Cases = {
  'POST /api/v0/webhooks': [
    succeeds(() => registration()),
    refuses('INVALID_CONTENT', () => registration({ secret: 'whsec_???' })),
    refuses('INVALID_CONTENT', () => registration({ events: ['nothing'] })),
    refuses('WEBHOOK_URL_REFUSED', () => registration({ url: 'http://example.org/' })),
    refuses('WEBHOOK_URL_REFUSED', () => registration({ url: 'https://127.0.0.1/' })),
    refuses('NOT_PERMITTED', () => registration({ address: signers.bob.address })),
    refuses('UNKNOWN_MESSAGE_TYPE', () => signedCall(PATH, { type: 'POST', content: {} })),
    refuses('TIMESTAMP_TOO_OLD', () =>
      signedCall(PATH, { type: 'WEBHOOK', timestamp: 1_700_000_000, content }),
    ),
    refuses('WEBHOOK_NOT_FOUND', async (core) => {
      const registered = registration({ filters: { channels: ['deleted'] } });
      const inject = ({ path: url, headers = {}, body = '' }: Call) =>
        core.api.inject({ method: 'POST', url, headers: { ...headers }, payload: body });
      const { webhook_id: id } = (await inject(registered)).json<{ webhook_id: string }>();
      await inject(request(id, 'delete'));
      return registered;
    }),
  ],
  'POST /api/v0/webhooks/list': [
    succeeds(async (core) => {
      await givenWebhook(core);
      return signedCall(`${PATH}/list`, { type: 'WEBHOOK', content: { action: 'list' } });
    }),
    refuses('NOT_PERMITTED', () =>
      signedCall(`${PATH}/list`, {
        type: 'WEBHOOK',
        content: { action: 'list', address: signers.bob.address },
      }),
    ),
    refuses('INVALID_CURSOR', () =>
      signedCall(`${PATH}/list`, { type: 'WEBHOOK', content: { action: 'list', cursor: 'x' } }),
    ),
  ],
  'POST /api/v0/webhooks/{webhook_id}/show': about('show'),
  'POST /api/v0/webhooks/{webhook_id}/pause': about('pause'),
  'POST /api/v0/webhooks/{webhook_id}/resume': about('resume'),
  'POST /api/v0/webhooks/{webhook_id}/test': [
    ...about('test'),
    refuses('WEBHOOK_NOT_ACTIVE', (core) => paused(core, 'test')),
  ],
  'POST /api/v0/webhooks/{webhook_id}/rotate': [
    ...about('rotate', { secret: 'another' }),
    refuses('INVALID_CONTENT', async (core) => request(await givenWebhook(core), 'rotate')),
  ],
  'POST /api/v0/webhooks/{webhook_id}/delete': about('delete').slice(0, -1),
  'POST /api/v0/webhooks/{webhook_id}/deliveries': [
    ...about('deliveries'),
    succeeds(async (core) => {
      const id = await givenWebhook(core);
      const { path: url, headers = {}, body = '' } = request(id, 'test');
      await core.api.inject({ method: 'POST', url, headers: { ...headers }, payload: body });
      return request(id, 'deliveries', { state: 'waiting', limit: 1 });
    }),
    refuses('INVALID_CURSOR', async (core) =>
      request(await givenWebhook(core), 'deliveries', { cursor: 'x' }),
    ),
  ],
  'POST /api/v0/webhooks/{webhook_id}/replay': [
    ...about('replay', { since_ms: 0 }),
    refuses('DELIVERY_NOT_FOUND', async (core) =>
      request(await givenWebhook(core), 'replay', { event_id: 'evt_1_x' }),
    ),
    refuses('INVALID_CONTENT', async (core) => request(await givenWebhook(core), 'replay')),
    refuses('WEBHOOK_NOT_ACTIVE', (core) => paused(core, 'replay', { since_ms: 0 })),
  ],
};
