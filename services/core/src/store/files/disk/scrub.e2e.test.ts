import assert from 'node:assert/strict';
import { mkdtemp, open, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex } from '@skerry/protocol';
import { type NodeProcess, startNode } from '../../../testing/node.ts';

const alice = createSigner(`0x${'a1'.repeat(32)}`);
const TEXT = 'as it was stored';
const HASH = sha256Hex(Buffer.from(TEXT));

async function store({ url }: NodeProcess): Promise<number> {
  const form = new FormData();
  form.append('address', alice.address);
  form.append('signature', alice.sign(HASH));
  form.append('file', new Blob([TEXT]));
  return (await fetch(`${url}/api/v0/storage/store`, { method: 'POST', body: form })).status;
}

async function diskReason({ url }: NodeProcess): Promise<string> {
  const { checks } = (await (await fetch(`${url}/health`)).json()) as {
    checks: { disk: { reason?: string } };
  };
  return checks.disk.reason ?? '';
}

const read = async ({ url }: NodeProcess) => (await fetch(`${url}/api/v0/storage/raw/${HASH}`)).status;

const metric = async ({ url }: NodeProcess, name: string) =>
  new RegExp(`^${name} (.*)$`, 'm').exec(await (await fetch(`${url}/metrics`)).text())?.[1];

test('a damaged file is found by the process that leads, each process says so, and it is well when it was stored again', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-scrub-'));
  const files = join(home, 'data', 'core', 'files');
  await using database = await createTestDatabase({ log: createLogger('test', 'silent') });
  const processes: NodeProcess[] = [];
  const start = async () => {
    const one = await startNode(home, database.url);
    processes.push(one);
    return one;
  };
  t.after(async () => {
    for (const one of processes) await one.end('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });
  const before = await start();
  assert.equal(await store(before), 200);
  await before.end('SIGTERM');
  const blob = await open(join(files, HASH.slice(0, 2), HASH.slice(2, 4), HASH), 'r+');
  await blob.write('A', 0);
  await blob.close();
  // A pass that began long ago: the turn of each file has come.
  await writeFile(join(files, 'scrub.json'), '{"after":"","since_ms":0}');

  const both = [await start(), await start()];
  for (const one of both) {
    const said = await until('it says so', () => diskReason(one));
    assert.equal(said, '1 file was damaged on the disk and did not come from others yet');
    assert.deepEqual([await read(one), await metric(one, 'skerry_damaged_files')], [404, '1']);
  }
  const found = await Promise.all(both.map((one) => metric(one, 'skerry_scrub_damaged_total')));
  assert.deepEqual(found.sort(), ['0', '1']);
  assert.deepEqual(await readdir(join(files, 'damaged')), [HASH]);

  assert.equal(await store(both[1]!), 200);
  for (const one of both) {
    await until(
      'it is well',
      () => diskReason(one),
      (reason) => reason === '',
    );
    assert.equal(await read(one), 200);
  }
  assert.deepEqual(await readdir(join(files, 'damaged')), []);
});
