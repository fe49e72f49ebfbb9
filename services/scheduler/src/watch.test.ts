import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { watchNetwork } from './watch.ts';

test('announcements are read page after page by cursor, so that one that is taken back meanwhile hides none', async () => {
  const asked: string[] = [];
  const pagination = { total: 2, page: 1, per_page: 1, total_pages: 2 };
  await using served = await serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    const isList = pathname === '/api/v0/messages';
    if (isList) asked.push(`${searchParams.get('page')} ${searchParams.get('cursor')}`);
    const next_cursor = isList && asked.length === 1 ? 'n' : null;
    const list = isList ? { messages: [] } : { instances: [], cursor: '5' };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...list, pagination, next_cursor }));
  });
  const stop = new AbortController();
  const ignore = () => {};
  await watchNetwork(
    {
      core: new CoreClient({ url: served.url }),
      nodes: () => [],
      allowed: undefined,
      listed: new Set(),
      signal: stop.signal,
      log: createLogger('test', 'silent'),
    },
    {
      onView: () => stop.abort(),
      onNode: ignore,
      onNodeGone: ignore,
      onInstance: ignore,
      onInstanceRemoved: ignore,
      onDisconnect: ignore,
    },
  );
  assert.deepEqual(asked, ['null null', 'null n']);
});
