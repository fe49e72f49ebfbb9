import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { RUNNING } from '../testing/run.ts';

test('a list that lacks instances which cannot be read does not pass for the whole one', async () => {
  const odd = { ...RUNNING, instance_id: 'f'.repeat(64), phase: 'dreaming' };
  const pagination = { page: 1, per_page: 100, total: 2, total_pages: 1 };
  await using core = await replying(() => ({
    ...{ instances: [RUNNING, odd], pagination, next_cursor: null, cursor: '1' },
  }));
  const list = (...more: string[]) =>
    skerryHere({ SKERRY_CORE_URL: core.url }, ['instance', 'list', '--all', ...more]);
  const { out, err, code } = await list('--json');
  assert.deepEqual(
    (JSON.parse(out) as { instance_id: string }[]).map((one) => one.instance_id),
    [RUNNING.instance_id],
  );
  const failure = JSON.parse(err) as { code: string; details: { unreadable: { instance_id: string }[] } };
  assert.deepEqual(
    [failure.code, failure.details.unreadable[0]!.instance_id],
    [...['UNEXPECTED_ANSWER', odd.instance_id]],
  );
  const people = await list();
  assert.match(people.out, /web/);
  assert.match(people.err, /^error: 1 instance cannot be read: .*\(UNEXPECTED_ANSWER\)/);
  assert.deepEqual([code, people.code], [5, 5]);
});
