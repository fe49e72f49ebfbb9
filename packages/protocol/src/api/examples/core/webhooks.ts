import type { Examples } from '../../operation.ts';
import { WEBHOOK, WEBHOOK_REQUESTS } from '../signed.ts';
import { OWNER, TIME, TIME_MS } from '../values.ts';

const webhook_id = WEBHOOK.itemHash;
const params = { webhook_id };
const { secret: _secret, ...told } = WEBHOOK.body.message.content;

const ACTIVE = {
  webhook_id,
  owner: OWNER,
  ...told,
  concurrency: 8,
  status: 'active',
  reason: null,
  created_at: TIME,
  updated_ms: TIME_MS,
  failing_since_ms: null,
  delivered_ms: TIME_MS + 60_000,
  old_secret_until_ms: null,
};

const DAY_MS = 86_400_000;
const WAITING = {
  event_id: 'evt_1204_1cfa5b757c310418ab454bf5',
  event: 'message.new',
  cursor: '1204',
  state: 'waiting',
  attempts: 1,
  planned_ms: TIME_MS,
  next_attempt_ms: TIME_MS + 5_000,
  settled_ms: null,
  log: [{ at_ms: TIME_MS, duration_ms: 31, status: 503 }],
};

export const WEBHOOK_EXAMPLES: Examples = {
  registerWebhook: { body: WEBHOOK.body, answer: { webhook_id, status: 'success' } },
  listWebhooks: { body: WEBHOOK_REQUESTS.list, answer: { webhooks: [ACTIVE], next_cursor: null } },
  showWebhook: { params, body: WEBHOOK_REQUESTS.show, answer: { ...ACTIVE, waiting: 0 } },
  pauseWebhook: {
    params,
    body: WEBHOOK_REQUESTS.pause,
    answer: {
      ...ACTIVE,
      status: 'paused',
      reason: { code: 'WEBHOOK_NOT_ACTIVE', message: 'its owner paused it' },
    },
  },
  resumeWebhook: { params, body: WEBHOOK_REQUESTS.resume, answer: ACTIVE },
  testWebhook: {
    params,
    body: WEBHOOK_REQUESTS.test,
    answer: { webhook_id, event_id: 'test_7_d5c6db9c1d346757d724f21a' },
  },
  rotateWebhook: {
    params,
    body: WEBHOOK_REQUESTS.rotate,
    answer: { ...ACTIVE, old_secret_until_ms: TIME_MS + DAY_MS },
  },
  deleteWebhook: { params, body: WEBHOOK_REQUESTS.delete, answer: { webhook_id, status: 'deleted' } },
  listDeliveries: {
    params,
    body: WEBHOOK_REQUESTS.deliveries,
    answer: { deliveries: [WAITING], next_cursor: null },
  },
  replayWebhook: {
    params,
    body: WEBHOOK_REQUESTS.replay,
    answer: { webhook_id, from_cursor: '1204', to_cursor: '1310' },
  },
};
