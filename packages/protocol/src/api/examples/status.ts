import type { Examples } from '../operation.ts';
import { DATE } from './values.ts';

const BEGIN = '2026-01-01T00:00:00.000Z';
const params = { id: 1 };
const SERVICE = {
  id: 1,
  name: 'core node 1',
  check_interval: 60,
  order_id: 1,
  public: true,
  group_id: 1,
  permalink: 'core-core-example',
  created_at: BEGIN,
  updated_at: DATE,
  online: true,
  latency: 1_250,
  ping_time: 1_250,
  online_24_hours: 100,
  online_7_days: 99.9,
  avg_response: 1_310,
  failures_24_hours: 0,
  status_code: 200,
  last_success: DATE,
  last_error: null,
  stats: { failures: 0, hits: 1_624, first_hit: BEGIN },
  messages: [],
  incidents: [],
  issue: null,
};

/** Of what the status service answers. */
export const STATUS_EXAMPLES: Examples = {
  listServices: { answer: [SERVICE] },
  getService: { params, answer: SERVICE },
  listFailures: {
    params,
    answer: [{ created_at: '2026-01-01T10:00:00.000Z', issue: 'answered 503', error_code: 503 }],
  },
  listUptime: {
    params,
    answer: [{ timeframe: '2026-01-01T10:00:00.000Z', amount: 100, hits: 15, avg_response: 1_310 }],
  },
  listDays: {
    params,
    answer: [{ date: '2026-01-01', amount: 99.93, hits: 1_440, failures: 1, avg_response: 1_310 }],
  },
  getStatus: { answer: { status: 'ok', reasons: [], services: { total: 7, online: 7 } } },
};
