import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { until } from '@skerry/kit/testing/until';
import type { ChargesView } from '@skerry/protocol/api/core/credits';
import type { SyncStatusView } from '@skerry/protocol/api/core/sync';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import { Charger } from './charger.ts';
import { creditConfig } from './config.ts';
import { startCredit } from './service.ts';

const log = createLogger('credit', 'silent');
const OWNER = `0x${'ab'.repeat(20)}`;
const NOBODY = { value: [], source: 'unset' };
const INFO = {
  ...{ node_multi_addresses: [], name: 'test', version: '1', address: OWNER },
  trust: {
    ...{
      schedulers: NOBODY,
      scoring_publishers: NOBODY,
      credit_publishers: NOBODY,
      known_core_nodes: NOBODY,
    },
    credit_enforcement: { value: false, source: 'unset' },
  },
};
const CHARGES = {
  start_date: 0,
  end_date: 3_600,
  credits: [{ address: OWNER, ref: 'a'.repeat(64), nanocredits: '5' }],
};
const LOW = {
  address: OWNER,
  ...{ credit_balance: 1, credit_balance_nano: '1', credit_rate_nano: '1' },
  ...{ credit_hold: 1, credit_available: 0, credit_state: null, credit_state_since: null },
  ...{ runs_out_at: 0, time: 1_000 },
};

const IN_STEP = CORE_EXAMPLES.getSyncStatus!.answer as SyncStatusView;

/** A core node that trusts nobody at first: whatever it is sent, it goes on asking for the same. */
async function serveCore(status: SyncStatusView = IN_STEP) {
  const state = { status, trusted: [] as string[] };
  const asked: string[] = [];
  const changes = new EventTarget();
  const served = await serving(({ method, url }, response) => {
    const { pathname } = new URL(url!, 'http://localhost');
    asked.push(`${method} ${pathname}`);
    changes.dispatchEvent(new Event('asked'));
    const answers: Record<string, unknown> = {
      '/api/v0/info/public.json': {
        ...INFO,
        trust: { ...INFO.trust, credit_publishers: { value: state.trusted, source: 'setting' } },
      },
      '/api/v0/sync/status': state.status,
      '/api/v0/credits/charges': CHARGES,
      '/api/v0/credits/accounts': { accounts: [LOW] },
    };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answers[pathname] ?? { item_hash: 'b'.repeat(64), status: 'success' }));
  });
  return Object.assign(state, { ...served, asked, changes });
}

async function startService(dataDir: string, coreUrl: string) {
  const config = readConfig(creditConfig, {
    SKERRY_CREDIT_DATA_DIR: dataDir,
    SKERRY_CREDIT_HOST: '127.0.0.1',
    SKERRY_CREDIT_PORT: '0',
    SKERRY_CREDIT_CORE_URL: coreUrl,
    SKERRY_CREDIT_CHARGE_INTERVAL_SECONDS: '1',
    SKERRY_CREDIT_WATCH_INTERVAL_SECONDS: '1',
  });
  return startCredit(config, { log, signal: new AbortController().signal });
}

test('a service that the core node does not trust sends nothing, and says why', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-'));
  await using core = await serveCore();
  await using credit = await startService(dir, core.url);
  const infos = () => core.asked.filter((one) => one.startsWith('GET /api/v0/info')).length;
  // Each of three loops asks once a round.
  while (infos() < 6) await once(core.changes as never, 'asked');
  assert.deepEqual(
    core.asked.filter((one) => one.startsWith('POST')),
    [],
  );
  const { status, reasons, address } = await call(credit.urls[0]!, CREDIT_API.getCreditStatus, {});
  assert.equal(status, 'degraded');
  const told = new RegExp(`does not trust .*${address} to SKERRY_CORE_CREDIT_PUBLISHERS`);
  assert.ok(
    reasons.some((reason) => told.test(reason)),
    reasons.join('\n'),
  );
  await rm(dir, { recursive: true });
});

test('a service whose core node lacks what its peers have sends nothing, says why, and goes on once it has that', async () => {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-'));
  stack.defer(() => rm(dir, { recursive: true }));
  const peers = IN_STEP.peers.map((peer) => ({ ...peer, state: 'syncing' as const }));
  const core = stack.use(await serveCore({ ...IN_STEP, state: 'syncing', behind: 7, peers }));
  const credit = stack.use(await startService(dir, core.url));
  const statusOf = () => call(credit.urls[0]!, CREDIT_API.getCreditStatus, {});
  core.trusted = [(await statusOf()).address];
  const count = (one: string) => core.asked.filter((asked) => asked === one).length;
  // Each of three loops asks once a round.
  await until('two rounds are over', () => count('GET /api/v0/sync/status') > 6);
  assert.deepEqual(
    core.asked.filter((one) => one.startsWith('POST')),
    [],
  );
  const { reasons } = await statusOf();
  assert.ok(
    reasons.some((reason) => /^nothing is charged.*at least 7 messages are missing$/.test(reason)),
    reasons.join('\n'),
  );
  core.status = IN_STEP;
  await until('it charges', () => core.asked.some((one) => one.startsWith('POST')));
});

test('a charge without effect is not repeated in the same round', async () => {
  const posted: ChargesView[] = [];
  const network = {
    readCharges: async () => CHARGES,
    postExpense: async (charges: ChargesView) => void posted.push(charges),
  };
  const store = { writeProgress: async () => {} };
  await new Charger(network, store, {}, () => 1_000_000, log).runRound();
  assert.equal(posted.length, 3);
});

test('a period that is made up for is asked for again until nothing of it is left', async () => {
  const HOUR = 3_600;
  const now = 1_000_000;
  let isTold = false;
  const asked: number[] = [];
  const network = {
    readCharges: async (_kind: string, time: number) => {
      asked.push(time);
      // The first expense is stored, and in force a moment later.
      return time < now && !isTold ? CHARGES : { ...CHARGES, credits: [] };
    },
    postExpense: async () => {},
  };
  const stored: unknown[] = [];
  const store = { writeProgress: async (change: unknown) => void stored.push(change) };
  const charged = { instance: now - HOUR, program: now, storage: now };
  const charger = new Charger(network, store, charged, () => now * 1_000, log);
  await charger.runRound();
  assert.deepEqual(stored, []);
  isTold = true;
  asked.length = 0;
  await charger.runRound();
  assert.ok(asked.includes(now - HOUR));
  assert.equal(stored.length, 1);
});

test('the log says for which time nothing is charged, once', async () => {
  const HOUR = 3_600;
  const now = 500_000 * HOUR;
  const told: string[] = [];
  const asked: number[] = [];
  const network = {
    readCharges: async (kind: string, time: number) => {
      if (kind === 'instance') asked.push(time);
      return { ...CHARGES, credits: [] };
    },
    postExpense: async () => {},
  };
  const store = { writeProgress: async () => {} };
  const charged = { instance: now - 100 * HOUR, program: now - 47 * HOUR, storage: now };
  const warned = createLogger('credit', 'warn', { write: (line) => void told.push(line) });
  const charger = new Charger(network, store, charged, () => now * 1_000, warned);
  await charger.runRound();
  await charger.runRound();
  assert.equal(Math.min(...asked), now - 48 * HOUR);
  assert.equal(told.length, 1);
  const { kind, from, to } = JSON.parse(told[0]!);
  const at = (hours: number) => new Date((now - hours * HOUR) * 1_000).toISOString();
  assert.deepEqual([kind, from, to], ['instance', at(99), at(48)]);
});
