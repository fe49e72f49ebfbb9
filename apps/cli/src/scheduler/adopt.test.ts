import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import { skerryHere } from '../testing/here.ts';

const OLD = `0x${'1'.repeat(40)}`;
/** More than one who asks is let off with. */
const REFUSALS = 70;
const { listInstances, getInfo } = CORE_EXAMPLES;
const PAGES: Readonly<Record<string, unknown>> = {
  [NODE_API.getInfo.path]: getInfo!.answer,
  [INSTANCES_API.listInstances.path]: { ...(listInstances!.answer as object), next_cursor: 'more' },
  [NETWORK_LISTS_API.listNetworkMessages.path]: {
    ...{ messages: [], pagination_per_page: 100, next_cursor: null },
  },
};

async function adopt(coreUrl: string, until: string) {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-adopt-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const keyFile = join(dir, 'key');
  await loadOrCreateKeyFile(keyFile);
  const given = ['--until', until, '--key-file', keyFile, '--dry-run', '--json'];
  return skerryHere({ SKERRY_HOME: dir, SKERRY_CORE_URL: coreUrl }, ['scheduler', 'adopt', OLD, ...given]);
}

test('however many pages there are, those that a core node gives only later are waited for', async () => {
  let asked = 0;
  await using core = await serving(({ url = '' }, response) => {
    const { pathname } = new URL(url, 'http://here');
    const isList = pathname === INSTANCES_API.listInstances.path;
    const isRefused = isList && asked++ % 2 === 0;
    const last = { ...(listInstances!.answer as object), next_cursor: null };
    const answer = isList && asked >= 2 * REFUSALS ? last : PAGES[pathname];
    const refusal = {
      status: 'error',
      code: 'RATE_LIMITED',
      error: 'too often',
      details: { retry_after: 0 },
    };
    response.writeHead(isRefused ? 429 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isRefused ? refusal : answer));
  });
  const { out, err, code } = await adopt(core.url, '2026-01-01T00:00Z');
  assert.equal(code, 0, err);
  assert.ok(JSON.parse(out).instances > 0);
  assert.equal(asked, 2 * REFUSALS);
});

test('a moment that is still to come is refused: what a thief has signed would count', async () => {
  const { err, code } = await adopt('http://127.0.0.1:1', String(Math.floor(Date.now() / 1000) + 3_600));
  assert.deepEqual([code === 0, /is still to come/.test(err)], [false, true]);
});
