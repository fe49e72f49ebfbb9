import assert from 'node:assert/strict';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { acquireLock } from '@skerry/kit';
import { AppError, parseVrfRequest } from '@skerry/protocol';
import { knownFromList } from './known-keys.ts';
import { openRandomness } from './randomness.ts';

async function createDataDir() {
  const path = await mkdtemp(join(tmpdir(), 'skerry-vrf-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

const request = parseVrfRequest({ seed: 'a seed', min: 1, max: 1_000_000, count: 3 });

describe("the node's key", () => {
  test('is made once, private, and answers the same after a restart', async () => {
    await using dir = await createDataDir();
    const first = await openRandomness({ dataDir: dir.path, epoch: 1, nowSeconds: 1000 });
    const again = await openRandomness({ dataDir: dir.path, epoch: 1, nowSeconds: 2000 });
    assert.deepEqual(again.generate(request), first.generate(request));
    assert.deepEqual(again.keys, first.keys);
    assert.deepEqual(await readdir(dir.path), ['vrf-keys.json']);
    assert.equal((await stat(join(dir.path, 'vrf-keys.json'))).mode & 0o777, 0o600);
  });

  test('is retired by a higher epoch; what it answered stays valid, and its secret is gone', async () => {
    await using dir = await createDataDir();
    const file = join(dir.path, 'vrf-keys.json');
    const open = (epoch: number, nowSeconds: number) =>
      openRandomness({ dataDir: dir.path, epoch, nowSeconds });
    const old = (await open(1, 1000)).generate(request);
    const oldSecret = JSON.parse(await readFile(file, 'utf8')).current.secret_key as string;
    const second = await open(2, 2000);
    const fresh = second.generate(request);
    assert.notDeepEqual(fresh.values, old.values);
    const third = await open(5, 1500);
    assert.deepEqual(
      third.keys.map(({ from, until }) => [from, until]),
      [
        [1500, null],
        [2000, 2000],
        [1000, 2000],
      ],
    );
    for (const answer of [old, fresh, third.generate(request)])
      assert.equal((await third.verify(answer)).valid, true);
    const unknown = await openRandomness({ dataDir: `${dir.path}/other`, epoch: 1, nowSeconds: 1 });
    const verdict = await unknown.verify(old);
    assert.equal(!verdict.valid && verdict.reason.code, 'VRF_KEY_UNKNOWN');
    assert.ok(!(await readFile(file, 'utf8')).includes(oldSecret));
    const lower = await open(1, 3000);
    assert.deepEqual(lower.keys, third.keys, 'a lower epoch changes nothing');
  });

  test('is replaced once by processes that start at once: each works with the key that the file has', async () => {
    await using dir = await createDataDir();
    const open = (epoch: number) => openRandomness({ dataDir: dir.path, epoch, nowSeconds: epoch });
    const file = join(dir.path, 'vrf-keys.json');
    await open(1);
    const old = await readFile(file);
    await open(2);
    const byAnother = await readFile(file, 'utf8');
    await writeFile(file, old);
    using lock = await acquireLock(`${file}.lock`, { waitMs: 0 });
    const opening = open(2);
    // It has read the old key by then, and the other one writes its own.
    await open(1);
    await open(1);
    await writeFile(file, byAnother);
    lock![Symbol.dispose]();
    const { keys } = await opening;
    assert.equal(keys[0]!.public_key, JSON.parse(byAnother).current.public_key);
    assert.equal(await readFile(file, 'utf8'), byAnother);
  });

  test('of another node is known where a source says so', async () => {
    await using dir = await createDataDir();
    const other = await openRandomness({ dataDir: join(dir.path, 'b'), epoch: 1, nowSeconds: 1 });
    const alsoKnown = knownFromList(other.keys);
    const own = { dataDir: join(dir.path, 'a'), epoch: 1, nowSeconds: 1 };
    const answer = other.generate(request);
    assert.equal((await (await openRandomness(own)).verify(answer)).valid, false);
    assert.equal((await (await openRandomness({ ...own, alsoKnown })).verify(answer)).valid, true);
  });

  test('in a file that is damaged, or open to others, stops the node and is not quoted', async () => {
    await using dir = await createDataDir();
    const file = join(dir.path, 'vrf-keys.json');
    const open = () => openRandomness({ dataDir: dir.path, epoch: 1, nowSeconds: 1000 });
    await open();
    const good = await readFile(file, 'utf8');
    const { secret_key: secret } = JSON.parse(good).current as { secret_key: string };
    const flipped = secret.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
    const refused = (error: unknown) =>
      error instanceof AppError &&
      error.code === 'INVALID_CONFIG' &&
      !`${error.message}${JSON.stringify(error.details ?? '')}`.includes(secret.slice(0, 8));
    for (const text of [
      '',
      '{}',
      'null',
      good.slice(0, -20),
      good.replace(secret, flipped),
      good.replace(secret, ''),
    ]) {
      await writeFile(file, text);
      await assert.rejects(open(), refused, text.slice(0, 20));
      assert.equal(await readFile(file, 'utf8'), text, 'it stays as it is');
    }
    await writeFile(file, good);
    await chmod(file, 0o640);
    await assert.rejects(open(), /chmod 600/);
    await chmod(file, 0o600);
    await open();
  });
});
