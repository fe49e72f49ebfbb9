import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createSigner, request, signMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { type NodeProcess, startNode } from '../testing/node.ts';

const SIZE_MIB = 512;
const MIB = 1024 ** 2;
/** What each message has at least. */
const TEXT_CHARS = 20_000;
const alice = createSigner(`0x${'a1'.repeat(32)}`);

function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', '/mnt']);
    return true;
  } catch {
    return false;
  }
}

interface SmallDisk extends AsyncDisposable {
  /** Where others find what is on it. */
  readonly inside: string;
  start(): Promise<NodeProcess>;
}

/** A small disk at `home`, in a namespace of its own: it outlives the nodes that run on it, and goes with its holder. */
async function mountSmallDisk(home: string): Promise<SmallDisk> {
  const mount = `mount -t tmpfs -o size=${SIZE_MIB}m tmpfs '${home}' && echo ready && exec sleep infinity`;
  const holder = spawn('unshare', ['--mount', 'sh', '-c', mount], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  return {
    inside: `/proc/${holder.pid}/root${home}`,
    start: () =>
      startNode(
        home,
        undefined,
        {},
        { execPath: 'nsenter', execArgv: [`--mount=/proc/${holder.pid}/ns/mnt`, process.execPath] },
      ),
    async [Symbol.asyncDispose]() {
      const ended = once(holder, 'exit');
      holder.kill('SIGKILL');
      await ended;
    },
  };
}

/** Nothing that the database could make smaller: it would take hundreds of times as many messages to fill the disk. */
const textOf = () => randomBytes((TEXT_CHARS / 4) * 3).toString('base64');

async function post(
  url: string,
  n: number,
): Promise<{ status: number; hash: string; retryAfter: string | null }> {
  const content = { type: 'note', content: { n, text: textOf() } };
  const { body, itemHash } = signMessage({ type: 'POST', content }, alice);
  const response = await fetch(`${url}/api/v0/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  await response.arrayBuffer();
  return { status: response.status, hash: itemHash, retryAfter: response.headers.get('retry-after') };
}

const skip = canMount() ? false : 'needs the right to mount a tmpfs in a namespace of its own (root)';

test('F6: on a disk that runs full the node refuses before its database fails, and goes on when there is room', {
  skip,
}, async (t: TestContext) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-small-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  await using disk = await mountSmallDisk(home);
  const { inside } = disk;
  let core = await disk.start();
  t.after(() => core.end('SIGKILL'));
  const health = async () =>
    (await (await fetch(`${core.url}/health`)).json()) as {
      status: string;
      checks: { database: { status: string }; disk: { takes_writes: boolean; reserve_bytes: number } };
    };
  const { reserve_bytes: reserveBytes } = (await health()).checks.disk;
  assert.equal(reserveBytes, 64 * MIB);
  // Somebody else fills the disk until little more than the reserve is left.
  const filler = join(inside, 'filler');
  const { bavail, bsize } = await statfs(inside);
  const file = await open(filler, 'w');
  for (let left = bavail * bsize - reserveBytes - 24 * MIB; left > 0; left -= MIB)
    await file.write(Buffer.alloc(MIB));
  await file.close();
  await until('there is still room', health, ({ checks }) => checks.disk.takes_writes);

  const acknowledged: string[] = [];
  let refused: Awaited<ReturnType<typeof post>> | undefined;
  for (let n = 0; !refused; n += 16) {
    assert.ok(n * TEXT_CHARS < SIZE_MIB * MIB, 'it refuses before it has taken more than the disk holds');
    for (const one of await Promise.all(Array.from({ length: 16 }, (_, at) => post(core.url, n + at)))) {
      if (one.status === 200) acknowledged.push(one.hash);
      else refused = one;
    }
  }
  assert.equal(refused.status, 507);
  assert.ok(Number(refused.retryAfter) > 0);
  t.diagnostic(`${acknowledged.length} messages were taken before the reserve was met`);
  // However long it is asked, the database stays well.
  for (let n = 0; n < 200; n++) assert.equal((await post(core.url, 100_000 + n)).status, 507);
  const full = await health();
  assert.deepEqual([full.checks.database.status, full.checks.disk.takes_writes], ['ok', false]);
  for (const hash of acknowledged.slice(-50))
    assert.equal((await request(`${core.url}/api/v0/messages/${hash}`)).status, 200);
  // Killed on the full disk, it recovers within the reserve, and reads.
  await core.end('SIGKILL');
  core = await disk.start();
  assert.equal((await post(core.url, 150_000)).status, 507);
  for (const hash of acknowledged)
    assert.equal((await request(`${core.url}/api/v0/messages/${hash}/status`)).status, 200);
  await rm(filler);
  await until(
    'it takes messages again',
    () => post(core.url, 200_000),
    ({ status }) => status === 200,
  );
  await core.end('SIGTERM');
});
