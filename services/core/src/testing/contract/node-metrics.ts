import { signers, type TestCore } from '../core.ts';
import { answers, type Case, type Cases, NO_HASH, refuses, succeeds } from './case.ts';

const NODE_ID = 'ab'.repeat(32);

const given = async (core: TestCore, kind: 'core' | 'compute') => {
  const record = { node_id: NODE_ID, measured_at: Date.now() / 1000, asn: 64_512, base_latency: 0.25 };
  await core.send(signers.monitor, {
    type: 'POST',
    channel: 'net-scoring',
    content: {
      type: 'net-scoring-metrics',
      content: {
        version: '1.0',
        tags: [],
        metrics: { ccn: [], crn: [], [kind === 'core' ? 'ccn' : 'crn']: [record] },
      },
    },
  });
  return `/api/v0/${kind}/${NODE_ID}/metrics`;
};

const casesOf = (kind: 'core' | 'compute'): Case[] => [
  succeeds(async (core) => ({ path: await given(core, kind) })),
  succeeds(async (core) => ({ path: `${await given(core, kind)}?format=rows&sort=DESC&start_date=0` })),
  answers(200, async (core) => ({ path: `${await given(core, kind)}?sort=-1&start_date=1.5` })),
  refuses('NODE_NOT_FOUND', `/api/v0/${kind}/${NO_HASH}/metrics`),
  refuses('INVALID_HASH', `/api/v0/${kind}/abc/metrics`),
  ...['start_date=x', 'sort=up', 'format=csv', 'end_date=-1', 'end_date=1790000000000'].map((query) =>
    refuses('INVALID_PARAMETERS', `/api/v0/${kind}/${NO_HASH}/metrics?${query}`),
  ),
];

const historyCasesOf = (kind: 'core' | 'compute'): Case[] => [
  succeeds(async (core) => ({ path: `${await given(core, kind)}/history` })),
  succeeds(async (core) => ({ path: `${await given(core, kind)}/history?step=60&count=400` })),
  refuses('NODE_NOT_FOUND', `/api/v0/${kind}/${NO_HASH}/metrics/history`),
  refuses('INVALID_HASH', `/api/v0/${kind}/abc/metrics/history`),
  ...['step=59', 'step=86401', 'count=0', 'count=401', 'step=x'].map((query) =>
    refuses('INVALID_PARAMETERS', `/api/v0/${kind}/${NO_HASH}/metrics/history?${query}`),
  ),
];

export const nodeMetricsCases: Cases = {
  'GET /api/v0/core/{node_hash}/metrics': casesOf('core'),
  'GET /api/v0/compute/{node_hash}/metrics': casesOf('compute'),
  'GET /api/v0/core/{node_hash}/metrics/history': historyCasesOf('core'),
  'GET /api/v0/compute/{node_hash}/metrics/history': historyCasesOf('compute'),
};
