import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildStoredMessage,
  CoreClient,
  createSigner,
  generatePrivateKey,
  publishMessage,
} from '@skerry/client';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

/** Noon of a day, Unix seconds. */
const noonOf = (day: number) => Date.UTC(2026, 0, day, 12) / 1_000;

test('what the API filters by, the commands do: messages, posts and aggregates of a node', async (t) => {
  await using home = await createTestDir();
  await using core = await startCore(home.path);
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  const signer = createSigner(generatePrivateKey());
  const client = new CoreClient({ url: core.url, signer });
  const { address } = signer;
  const post = async (day: number, type: string, more: object = {}, content: object = { text: `${day}` }) =>
    (
      await client.postMessage({
        type: 'POST',
        channel: day < 3 ? 'early' : 'late',
        content: { type, content, ...more },
        timestamp: noonOf(day),
      })
    ).item_hash;
  const first = await post(1, 'note', {}, { text: 'one', tags: ['a'] });
  const second = await post(2, 'note');
  const third = await post(3, 'answer', { ref: first });
  const amend = await post(4, 'amend', { ref: first }, { text: 'uno' });
  for (const [key, city] of [
    ['profile', 'Oban'],
    ['settings', 'none'],
  ])
    await client.postMessage({ type: 'AGGREGATE', content: { key, content: { city } } });
  const file = await client.postMessage({
    type: 'AGGREGATE',
    content: { key: 'profile', content: { name: 'Ailsa' } },
  });

  const json = async (...args: string[]) => {
    const { out, err, code } = await skerryHere(environment, [...args, '--json']);
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
    return JSON.parse(out);
  };
  const hashesOf = async (...args: string[]) =>
    (await json('message', 'list', '--type', 'POST', '--address', address, ...args)).messages.map(
      ({ item_hash }: { item_hash: string }) => item_hash,
    );

  await t.test('messages, by each option', async () => {
    for (const [args, hashes] of [
      [
        ['--since', '2026-01-02T00:00Z', '--until', '2026-01-04T00:00Z'],
        [third, second],
      ],
      [['--since', String(noonOf(4))], [amend]],
      [
        ['--channel', 'early', '--oldest'],
        [first, second],
      ],
      [
        ['--content-type', 'answer,amend'],
        [amend, third],
      ],
      [
        ['--ref', first, '--sort', 'tx-time', '--oldest'],
        [third, amend],
      ],
      [['--tag', 'a'], [first]],
      [
        ['--hash', `${first},${third}`],
        [third, first],
      ],
      [['--owner', address, '--limit', '1', '--page', '2'], [third]],
      [['--chain', 'SOL'], []],
      [['--payment', 'hold'], []],
      [['--start-block', '1'], []],
      [['--content-hash', 'a'.repeat(64)], []],
      [['--status', 'rejected,pending'], []],
    ] as const)
      assert.deepEqual(await hashesOf(...args), hashes, args.join(' '));
    const keyed = await json('message', 'list', '--content-key', 'profile', '--until', '1h');
    assert.deepEqual(keyed.messages, []);
    assert.deepEqual(keyed.pagination, { total: 0, page: 1, per_page: 20, total_pages: 0 });
  });

  await t.test('who reads a list is told that there is more, and a wrong date before it asks', async () => {
    const mine = ['message', 'list', '--type', 'POST', '--address', address, '--limit', '3'];
    const { out, err } = await skerryHere(environment, mine);
    assert.equal(out.trim().split('\n').length, 4);
    assert.equal(err, 'page 1 of 2 (4 messages); more with --page 2\n');
    const last = await skerryHere(environment, [...mine, '--page', '2']);
    assert.equal(last.err, 'page 2 of 2 (4 messages)\n');
    const bad = await skerryHere(environment, ['message', 'list', '--since', '1790000000000']);
    assert.deepEqual([bad.code, bad.out], [2, '']);
    assert.match(bad.err, /Unix seconds, not milliseconds/);
  });

  await t.test('a post as it is now, and what amended it', async () => {
    const got = await json('post', 'get', first);
    assert.deepEqual([got.content, got.item_hash, got.original_item_hash], [{ text: 'uno' }, amend, first]);
    assert.deepEqual(got.amends, [{ item_hash: amend, sender: address, time: noonOf(4) }]);
    assert.equal(got.amends_total, 1);
    const { out } = await skerryHere(environment, ['post', 'get', first]);
    assert.match(out, new RegExp(`^item_hash: ${first}\nlatest: ${amend}\ntype: note\n`));
    const amending = await skerryHere(environment, ['post', 'get', amend]);
    assert.deepEqual([amending.code, amending.out], [3, '']);
    assert.match(amending.err, new RegExp(`\nhint: skerry post get ${first}\n`));
    const none = await skerryHere(environment, ['post', 'get', 'a'.repeat(64)]);
    assert.equal(none.code, 3);
    assert.match(none.err, /\(MESSAGE_NOT_FOUND\)/);
    const { posts } = await json(
      'post',
      'list',
      '--address',
      address,
      '--type',
      'note',
      '--since',
      '2026-01-01',
    );
    assert.deepEqual(
      posts.map((one: { original_item_hash: string }) => one.original_item_hash),
      [first, second],
    );
  });

  await t.test('aggregates by key, and their keys', async () => {
    const { out } = await skerryHere(environment, ['aggregate', 'get', address, 'profile']);
    assert.deepEqual(JSON.parse(out), { city: 'Oban', name: 'Ailsa' });
    const one = await json('aggregate', 'get', address, 'profile');
    assert.deepEqual([one.address, one.aggregates[0].item_hash], [address, file.item_hash]);
    const all = await skerryHere(environment, ['aggregate', 'get', address]);
    assert.deepEqual(JSON.parse(all.out), {
      profile: { city: 'Oban', name: 'Ailsa' },
      settings: { city: 'none' },
    });
    const none = await skerryHere(environment, ['aggregate', 'get', address, 'profile', 'nothing']);
    assert.deepEqual([none.code, none.out], [3, '']);
    assert.match(none.err, /\(AGGREGATE_NOT_FOUND\)/);
    const both = await skerryHere(environment, ['aggregate', 'list', address, '--all']);
    assert.deepEqual([both.code, both.out], [2, '']);
    // What would move a cursor is an escape of the same value: a pipe gets what was written.
    const content = { key: 'odd', content: { said: 'a\u009b31m\u202eb' } };
    await client.postMessage({ type: 'AGGREGATE', content });
    const odd = await skerryHere(environment, ['aggregate', 'get', address, 'odd']);
    assert.deepEqual(JSON.parse(odd.out), content.content);
    const { aggregates } = await json('aggregate', 'list', address);
    assert.deepEqual(aggregates.map(({ key }: { key: string }) => key).sort(), [
      'odd',
      'profile',
      'settings',
    ]);
  });

  await t.test('a file without its bytes', async () => {
    const { out } = await skerryHere(environment, ['key', 'new']);
    assert.match(out, /0x/);
    const stored = (await skerryHere(environment, ['file', 'put', '-', '--json'], 'a file')).out;
    const { file_hash, item_hash } = JSON.parse(stored);
    const info = await json('file', 'info', item_hash);
    assert.deepEqual([info.file_hash, info.size, info.kept_by_total], [file_hash, 6, 1]);
    assert.equal(info.kept_by[0].item_hash, item_hash);
    // A message keeps its content, too, if that is a file.
    const filed = buildStoredMessage({ type: 'POST', content: { type: 'note', content: {} } }, signer);
    const added = await fetch(`${core.url}/api/v0/storage/add_file`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: filed.content },
    });
    assert.ok(added.ok, await added.text());
    await publishMessage(core.url, filed.body);
    const content = await json('file', 'info', filed.itemHash);
    assert.deepEqual([content.kept_by, content.kept_by_total], [[], 1]);
    const { err } = await skerryHere(environment, ['file', 'info', filed.itemHash]);
    assert.equal(err, 'messages that keep it, also as their content or code: 1\n');
  });
});
