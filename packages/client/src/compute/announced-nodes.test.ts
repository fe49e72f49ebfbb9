import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '@skerry/protocol';
import { CoreClient } from '../core-client.ts';
import { answering } from '../testing/answering.ts';
import { AnnouncementReader } from './announced-nodes.ts';

const POSTS = '/api/v0/posts.json';
const never = new AbortController().signal;
const NOW = 1_790_000_000;
const MINUTE_MS = 60_000;

/** What a node says of itself, as a core node lists it. @param digit of its address */
const post = (digit: string, url: string, time: number) => ({
  address: `0x${digit.repeat(40)}`,
  item_hash: digit,
  time,
  content: {
    url,
    ipv6_prefix: '2a00:1:2:3::/64',
    capacity: { cpu: 1, memory_mib: 1_024, disk_gib: 10 },
    features: [],
    version: '1',
    announced_at_ms: time * 1_000,
    reason: null,
  },
});
const page = (posts: readonly unknown[], next: string | null = null) => ({
  posts,
  pagination_per_page: 500,
  next_cursor: next,
});

test('who asks again reads only the newest announcements, and all of them every ten minutes', async () => {
  await using node = await answering({
    [POSTS]: [
      page([post('1', 'http://one', NOW), post('2', 'http://two', NOW - 9_000)], 'n'),
      page([post('3', 'http://three', NOW - 90_000)]),
      page([post('1', 'http://moved', NOW + 60)]),
      page([post('1', 'http://moved', NOW + 60)]),
    ],
  });
  let uptimeMs = 0;
  const reader = new AnnouncementReader(new CoreClient({ url: node.url }), () => uptimeMs);
  const urls = async () => (await reader.read(never)).nodes.map(({ url }) => url);
  const startsOf = () =>
    node.asked.splice(0).map((url) => new URL(url, 'http://x').searchParams.get('startDate'));

  assert.deepEqual(await urls(), ['http://one', 'http://two', 'http://three']);
  assert.deepEqual(startsOf(), [null, null]);
  uptimeMs += 9 * MINUTE_MS;
  assert.deepEqual(await urls(), ['http://moved', 'http://two', 'http://three']);
  // As far back as what is still on its way can be dated.
  assert.deepEqual(startsOf(), [String(NOW - 2 * (LIMITS.futureSeconds + LIMITS.lateSeconds))]);
  // What took its word back is gone then.
  uptimeMs += MINUTE_MS;
  assert.deepEqual(await urls(), ['http://moved']);
  assert.deepEqual(startsOf(), [null]);
});
