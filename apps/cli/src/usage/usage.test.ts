import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpServer, createLogger, listen, serveAll } from '@skerry/kit';
import { type GuestUsageListView, type GuestUsageView, USAGE_API } from '@skerry/protocol/api/compute/usage';
import { AppError } from '@skerry/protocol/forms';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { rateUsage, SORTS, sortUsage } from './rates.ts';

const at = (seconds: number) => new Date(seconds * 1_000).toISOString();

const guest = (digit: string, more: Partial<GuestUsageView> = {}): GuestUsageView => ({
  kind: 'instance',
  item_hash: digit.repeat(64),
  owner: '0x1111111111111111111111111111111111111111',
  host_name: `name-of-${digit}`,
  phase: 'running',
  since: at(1),
  cpu: { seconds: 10, granted: 1 },
  memory: { bytes: 100, granted_bytes: 200 },
  disk: { bytes: 1_000, granted_bytes: 2_000 },
  network: { in_bytes: 0, out_bytes: 0, in_packets: 0, out_packets: 0 },
  ...more,
});
const off = { since: null, cpu: { seconds: null, granted: 1 }, memory: { bytes: null, granted_bytes: 200 } };

test('rates are of two readings, and none where a guest was started in between', () => {
  const [calm, busy, again] = [guest('a'), guest('b'), guest('c')];
  const first = { read_at: at(10), guests: [calm, busy, again] };
  const second = {
    read_at: at(14),
    guests: [
      calm,
      guest('b', {
        cpu: { seconds: 12, granted: 1 },
        network: { in_bytes: 400, out_bytes: 800, in_packets: 4, out_packets: 8 },
      }),
      guest('c', { since: at(13), cpu: { seconds: 11, granted: 1 }, network: null }),
      guest('d', off),
    ],
  };
  const rated = rateUsage(first, second);
  assert.deepEqual(
    rated.map(({ rates }) => rates),
    [
      { cpu: 0, in_bytes: 0, out_bytes: 0, in_packets: 0, out_packets: 0 },
      { cpu: 0.5, in_bytes: 100, out_bytes: 200, in_packets: 1, out_packets: 2 },
      { cpu: null, in_bytes: null, out_bytes: null, in_packets: null, out_packets: null },
      null,
    ],
  );
  const orderBy = (sort: (typeof SORTS)[number]) =>
    sortUsage(rated, sort)
      .map(({ item_hash: hash }) => hash[0])
      .join('');
  assert.equal(orderBy('cpu'), 'bacd');
  assert.equal(orderBy('cpu-time'), 'bcad');
  assert.equal(orderBy('out'), 'bacd');
  assert.equal(orderBy('packets'), 'bacd');
  assert.equal(orderBy('memory'), 'abcd');
  assert.equal(orderBy('since'), 'abcd');
  for (const sort of SORTS) assert.equal(orderBy(sort).length, 4);
});

async function runCli(args: readonly string[]) {
  await using home = await createTestDir();
  const { path } = home;
  const { code, out, err } = await skerryHere(
    { PATH: process.env.PATH, SKERRY_HOME: path, HOME: path },
    args,
  );
  return { exitCode: code, stdout: out, stderr: err };
}

/** A node that says one reading after the other, then the last one again. */
async function nodeSaying(...readings: (GuestUsageListView | AppError)[]) {
  const app = await createHttpServer({ log: createLogger('test', 'silent') });
  serveAll(app, USAGE_API, {
    async listGuestUsage() {
      const [next] = readings.length > 1 ? readings.splice(0, 1) : readings;
      if (next instanceof AppError) throw next;
      return next!;
    },
    getComputeMetrics: () => '',
  });
  const url = await listen(app, '127.0.0.1', 0);
  return { url, [Symbol.asyncDispose]: async () => void (await app.close()) };
}

test('an operator is shown who uses most, as many as are asked for, and how many more there are', async () => {
  const program = guest('e', {
    ...{ kind: 'program', host_name: null, phase: null, disk: null, network: null },
    cpu: { seconds: 75, granted: 1 },
  });
  const hostile = guest('d', { ...off, owner: 'a\u001b[31mb', host_name: 'x\u001b[2Jy', phase: 'failed' });
  const before = { read_at: at(10), guests: [guest('a'), guest('b'), hostile, program] };
  const after = {
    read_at: at(12),
    guests: [
      guest('a'),
      guest('b', {
        cpu: { seconds: 11, granted: 1 },
        memory: { bytes: 3 * 1024 ** 2, granted_bytes: 2 ** 30 },
      }),
      hostile,
      program,
    ],
  };
  await using node = await nodeSaying(before, after);
  const asked = ['compute', 'usage', '--node', node.url, '--interval', '1s'];
  const shown = await runCli(asked);
  assert.equal(shown.exitCode, 0, shown.stderr);
  const lines = shown.stdout.split('\n');
  assert.match(lines[0]!, /^GUEST +OWNER +CPU +CPU TIME +MEMORY +DISK +IN\/S/);
  assert.match(
    lines[1]!,
    /^name-of-b +0x1111111111 +50\.0 % +11\.0 s +3\.0 MiB of 1\.0 GiB +1000 B of 2\.0 KiB/,
  );
  assert.match(shown.stdout, /^program e{12} +0x1111111111 +0\.0 % +1 min 15 s .* - /m);
  assert.match(shown.stdout, /^x \[2Jy \(failed\) +a \[31mb +- +- +- of 200 B/m);
  assert.ok(!shown.stdout.includes('\u001b'));

  const one = JSON.parse((await runCli([...asked, '--limit', '1', '--sort', 'memory', '--json'])).stdout);
  assert.equal(one.total, 4);
  assert.deepEqual(
    one.guests.map(({ host_name: name }: GuestUsageView) => name),
    ['name-of-b'],
  );
  assert.match((await runCli([...asked, '--limit', '1'])).stdout, /^3 more; --limit shows them$/m);
});

test('a node that does not let one read, or does not answer, is told so', async () => {
  await using node = await nodeSaying(new AppError('NOT_PERMITTED', 'ask on the server of the node'));
  const refused = await runCli(['compute', 'usage', '--node', node.url]);
  assert.deepEqual([refused.exitCode, /ask on the server/.test(refused.stderr)], [4, true]);
  const silent = await runCli(['compute', 'usage', '--node', 'http://127.0.0.1:9']);
  assert.equal(silent.exitCode, 5);
  assert.match(silent.stderr, /is it the compute node's address\?/);
  const wrong = await runCli(['compute', 'usage', '--sort', 'luck']);
  assert.deepEqual([wrong.exitCode, /Expected one of cpu, cpu-time/.test(wrong.stderr)], [2, true]);
});
