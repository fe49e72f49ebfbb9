import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { until } from '../testing/shell.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;

interface Got {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** What a delivery tells of, as far as it is looked at here. */
const told = ({ body }: Got) =>
  JSON.parse(body) as { type: string; data: { item_hash?: string; channel?: string } };

/** An endpoint that takes everything. */
async function startReceiver() {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const headers = request.headers as Record<string, string>;
    got.push({ id: headers['webhook-id']!, headers, body });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    got,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('skerry webhook: every action on a core node, and what arrives', async () => {
  await using receiver = await startReceiver();
  await using home = await createTestDir();
  await using core = await startCore(home.path, {
    SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
    SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  });
  const environment = { SKERRY_HOME: home.path, HOME: home.path };
  const run = (...args: string[]) => skerryHere(environment, [...args, '--core', core.url]);
  const webhook = async (...args: string[]) => {
    const { out, err, code } = await run('webhook', ...args, '--json');
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
    return JSON.parse(out);
  };
  const arrived = (what: string, fits: (one: Got) => boolean, times = 1) =>
    until(what, TIMEOUT_MS, async () => receiver.got.filter(fits).length >= times);
  const post = async (channel: string, word: string) => {
    const content = JSON.stringify({ type: 'note', content: { word } });
    const { code, out, err } = await run('message', 'post', '--channel', channel, '--content', content);
    assert.equal(code, 0, err);
    return out.trim();
  };

  assert.equal((await run('key', 'new')).code, 0);
  const { webhook_id: id, secret } = await webhook('add', receiver.url, '--channel', 'notes');
  // Were it heard, it would be first.
  await post('other', 'unheard');
  const heard = await post('notes', 'one');
  await arrived('a message', () => true);
  const [first] = receiver.got;
  assert.deepEqual([told(first!).data.item_hash, told(first!).data.channel], [heard, 'notes']);
  // The reference library of the Standard Webhooks specification.
  const payload = new Webhook(secret).verify(first!.body, first!.headers) as { type: string };
  assert.equal(payload.type, 'message.new');

  assert.deepEqual(
    (await webhook('list')).webhooks.map((one: { webhook_id: string }) => one.webhook_id),
    [id],
  );
  assert.equal((await webhook('show', id)).status, 'active');
  // Whoever has several tells them apart by what they are for.
  const shown = (await run('webhook', 'show', id)).out;
  for (const line of ['channels: notes', 'parallel deliveries: 8', 'status: active'])
    assert.match(shown, new RegExp(`^${line}$`, 'm'));
  assert.match(shown, /^waiting: \d+$/m);
  const { event_id: testId } = await webhook('test', id);
  await arrived('the test', (one) => one.id === testId);
  await until('it is in the log', TIMEOUT_MS, async () =>
    (await webhook('deliveries', id, '--state', 'delivered')).deliveries.some(
      (one: { event_id: string }) => one.event_id === first!.id,
    ),
  );

  const newest = await run('webhook', 'deliveries', id, '--limit', '1');
  const [, cursor = ''] = /there are more: .*--cursor ([^"]+)"/.exec(newest.err) ?? [];
  const [older] = (await webhook('deliveries', id, '--limit', '1', '--cursor', cursor)).deliveries;
  assert.ok(older !== undefined && !newest.out.includes(older.event_id), newest.err);

  assert.equal((await webhook('pause', id)).status, 'paused');
  const missed = await post('notes', 'two');
  assert.equal((await webhook('resume', id)).status, 'active');
  await arrived('what was missed', (one) => told(one).data.item_hash === missed);

  const { secret: second } = await webhook('rotate', id, '--overlap', '1h');
  await webhook('replay', id, '--event', first!.id);
  await arrived('it again, under the same id', (one) => one.id === first!.id, 2);
  const again = receiver.got.findLast((one) => one.id === first!.id)!;
  for (const key of [secret, second]) new Webhook(key).verify(again.body, again.headers);
  const tested = await run('webhook', 'replay', id, '--event', testId);
  assert.equal(tested.out.trim(), `${testId} will be delivered again`);
  await arrived('the test again', (one) => one.id === testId, 2);
  const nothing = await run('webhook', 'replay', id, '--since', '2h', '--until', '1h');
  assert.equal(nothing.out.trim(), 'no events in this period');
  await webhook('replay', id, '--since', '1h');
  await arrived('everything again', (one) => one.id === first!.id, 3);
  const future = await run('webhook', 'replay', id, '--since', '1m', '--until', '2m');
  assert.notEqual(future.code, 0, 'a time that ends before it begins');
  for (const period of ['--since', '--until']) {
    const both = await run('webhook', 'replay', id, '--event', testId, period, '1h');
    assert.match(both.err, /either --event, or --since and perhaps --until/);
  }

  const messages = receiver.got.map(told).filter(({ type }) => type === 'message.new');
  assert.deepEqual([...new Set(messages.map(({ data }) => data.channel))], ['notes']);

  await webhook('delete', id, '--yes');
  const gone = await run('webhook', 'show', id);
  assert.notEqual(gone.code, 0);
  assert.match(gone.err, /WEBHOOK_NOT_FOUND/);
});
