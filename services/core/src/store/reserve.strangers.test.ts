import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { decideLogBytes, decideReserveBytes, Reserve } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { createHttpLink } from '../peers/sync/link.ts';
import { createTestCore, signers } from '../testing/core.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const { alice } = signers;
const { signal } = new AbortController();
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: n } }) as const;

test('F6: the reserve has room for the log of the database and for its recovery, on disks of every size', () => {
  for (const diskBytes of [100 * MIB, 672 * MIB, 5 * GIB, 20 * GIB, 4_000 * GIB]) {
    const logBytes = decideLogBytes(diskBytes);
    assert.ok(logBytes >= 32 * MIB && logBytes <= 512 * MIB);
    assert.equal(decideReserveBytes(diskBytes, 0), 2 * logBytes);
  }
  assert.equal(decideReserveBytes(4_000 * GIB, 0), GIB);
  assert.equal(decideReserveBytes(672 * MIB, 0), 64 * MIB);
  assert.equal(decideReserveBytes(4_000 * GIB, 3), 3 * MIB);
});

test('F6: below the reserve a node takes nothing new, says so once, goes on reading, and resumes by itself', async () => {
  await using stack = new AsyncDisposableStack();
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  let freeBytes = 10 * GIB;
  const measure = async () => ({ freeBytes, sizeBytes: 100 * GIB });
  const reserve = new Reserve({ setMib: 0, log, measure });
  await reserve.watch('/data');
  const other = stack.use(await createTestCore());
  const url = await other.listen();
  const core = stack.use(await createTestCore({ log, reserve, peers: [createHttpLink(url)] }));
  const first = await core.send(alice, note(1));
  assert.equal(first.status, 200);
  await other.send(alice, note(2));

  freeBytes = GIB - 1;
  await reserve.look();
  for (let n = 0; n < 20; n++) {
    const { status, body, headers } = await core.send(alice, note(3));
    assert.deepEqual([status, body.code], [507, 'STORAGE_FULL']);
    assert.ok(Number(headers['retry-after']) > 0);
    assert.match(body.error, /1024 MiB/);
  }
  const upload = await core.post('/storage/add_json', '{"a":1}');
  assert.deepEqual([upload.status, upload.body.code], [507, 'STORAGE_FULL']);
  const hook = {
    type: 'WEBHOOK',
    content: { url: 'https://example.com/', events: ['message.new'], secret: 'x'.repeat(32) },
  };
  assert.equal((await core.send(alice, hook, '/webhooks')).status, 507);
  assert.equal(await core.rooms.sync.syncer.round(signal), false);
  const { body: health, status } = await core.get('/health');
  const { status: disk, takes_writes, reserve_bytes } = health.checks.disk;
  assert.deepEqual([status, disk, takes_writes, reserve_bytes], [200, 'degraded', false, GIB]);
  assert.equal((await core.get(`/messages/${first.body.item_hash}`)).status, 200);
  assert.equal((await core.get('/messages')).body.pagination.total, 1);

  // A little more is not enough, so that it does not flutter.
  freeBytes = GIB + 1;
  await reserve.look();
  assert.equal((await core.send(alice, note(4))).status, 507);
  freeBytes = 2 * GIB;
  await reserve.look();
  assert.equal((await core.send(alice, note(4))).status, 200);
  assert.equal(await core.rooms.sync.syncer.round(signal), true);
  assert.equal((await core.get('/messages')).body.pagination.total, 3);
  const said = lines.filter((line) => /nearly full|has space again/.test(line));
  assert.equal(said.length, 2, said.join(''));
});

test('F6: an upload ends where the reserve begins, before the disk is looked at again', async () => {
  const log = createLogger('core', 'fatal');
  const measure = async () => ({ freeBytes: GIB + 10 * MIB, sizeBytes: 100 * GIB });
  const reserve = new Reserve({ setMib: 0, log, measure });
  await reserve.watch('/data');
  await using core = await createTestCore({ reserve });
  const megabytes = (count: number) => Readable.from(Array.from({ length: count }, () => Buffer.alloc(MIB)));
  const small = await core.blobs.receive(megabytes(8), GIB);
  await small.discard();
  await assert.rejects(core.blobs.receive(megabytes(8), GIB), { code: 'STORAGE_FULL' });
});
