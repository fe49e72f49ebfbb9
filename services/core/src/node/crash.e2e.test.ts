import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { request } from '@skerry/client';
import { killUnderLoad, surviveKills } from '../testing/crash.ts';
import { startNode } from '../testing/node.ts';

/** 50 of them are in crash.soak.test.ts. */
const KILLS = 2;
const KILLS_EMBEDDED = 1;

test(`kill -9 of the core node ${KILLS} times under load: what was acknowledged is there, once, and the state is that of its messages`, (t) =>
  surviveKills(t, KILLS));

test('the same with the embedded database, which ends and starts with the node', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-crash-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const acknowledged = new Set<string>();
  for (let kill = 0; kill < KILLS_EMBEDDED; kill++) {
    const core = await startNode(home);
    t.after(() => core.end('SIGKILL'));
    for (const hash of await killUnderLoad(core, 50 + 37 * kill)) acknowledged.add(hash);
  }
  const core = await startNode(home);
  t.after(() => core.end('SIGKILL'));
  for (const hash of acknowledged) {
    const { status } = (await (await request(`${core.url}/api/v0/messages/${hash}/status`)).json()) as {
      status: string;
    };
    assert.ok(['processed', 'forgotten'].includes(status), status);
  }
  await core.end('SIGTERM');
});
