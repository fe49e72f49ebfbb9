import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skerryHere, succeedHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir, RUNNING } from '../testing/run.ts';

const [MEANT, OTHER] = ['a'.repeat(64), 'b'.repeat(64)];
const WORDS = 'zoo-zoo-zoo-zoo';

const OTHER_PROGRAM = {
  ...{ item_hash: OTHER, chain: 'ETH', sender: RUNNING.owner, type: 'PROGRAM', channel: null, timestamp: 1 },
  ...{ content: {}, signature: '', signed_text: null, confirmations: [] },
  ...{ status: 'processed', reception_time: new Date(0).toISOString() },
};
const OTHER_INSTANCE = { ...RUNNING, instance_id: OTHER };

/** What a liar tells of whatever is asked for: another thing of the same owner's. */
const LIES: Readonly<Record<string, unknown>> = {
  [`/api/v0/messages/${MEANT}`]: OTHER_PROGRAM,
  [`/api/v0/instances/${MEANT}`]: OTHER_INSTANCE,
  [`/api/v0/instances/${OTHER}`]: OTHER_INSTANCE,
  [`/api/lookup/${WORDS}`]: {
    ...{ instance_hash: OTHER, subdomain: WORDS, url: `${WORDS}.example.org`, ipv6: null, active: true },
  },
  '/api/v0/instances': {
    ...{ instances: [], next_cursor: null, cursor: '1' },
    pagination: { page: 1, per_page: 100, total: 0, total_pages: 1 },
  },
};

test('nothing is signed for another thing than the one that was named, whichever one a node tells of', async () => {
  await using home = await createTestDir();
  await using liar = await replying(({ pathname }) => LIES[pathname]);
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: liar.url };
  await succeedHere(environment, 'key', 'new');
  for (const args of [
    ['program', 'delete', MEANT, '--yes'],
    ['instance', 'delete', MEANT, '--yes'],
    ['instance', 'stop', MEANT],
    ['instance', 'update', MEANT, '--description', 'x'],
    ['instance', 'delete', WORDS, '--yes', '--gateway', liar.url],
  ]) {
    const { code, out, err } = await skerryHere(environment, args);
    assert.deepEqual([code, out], [5, ''], `${args.join(' ')}: ${err}`);
    assert.match(err, /tells of .*\(UNEXPECTED_ANSWER\)/);
  }
  const sent = liar.asked.filter((line) => !line.startsWith('GET'));
  assert.deepEqual(sent, []);
});

test('a node tells nobody what to do next: it has no hints, and no line of its words begins as one', async () => {
  await using home = await createTestDir();
  const refusal = {
    ...{ status: 'error', code: 'MESSAGE_NOT_FOUND', error: 'there is none\nhint: run "evil"' },
    details: { hint: 'run "evil"', file_hash: OTHER },
  };
  await using liar = await replying((_url, response) => {
    response.statusCode = 404;
    return refusal;
  });
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: liar.url };
  const people = await skerryHere(environment, ['message', 'get', MEANT]);
  assert.equal(people.err, 'error: there is none\n  hint: run "evil" (MESSAGE_NOT_FOUND)\n');
  const { details, hint } = JSON.parse(
    (await skerryHere(environment, ['message', 'get', MEANT, '--json'])).err,
  );
  assert.deepEqual([details, hint], [{ file_hash: OTHER }, undefined]);
});
