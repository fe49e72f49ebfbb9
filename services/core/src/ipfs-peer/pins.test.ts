import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CID } from 'multiformats/cid';
import { Dag } from '../store/ipfs/testing/dags.ts';
import { createTestCore, signers } from '../testing/core.ts';
import { CoreBlocks } from './core-blocks.ts';
import { PinList } from './pins.ts';
import { ByteRate } from './rate.ts';
import { addFile } from './testing/add-file.ts';

const HOUR_MS = 3_600_000;

test('what comes into force behind newer messages is found within the hour', async () => {
  await using core = await createTestCore();
  const { signal } = new AbortController();
  const nowSeconds = Math.floor(Date.now() / 1000);
  const pin = async (text: string, timestamp: number) => {
    const cid = await addFile(core, Buffer.from(text));
    const content = { item_type: 'ipfs', item_hash: cid };
    const { status, body } = await core.send(signers.alice, {
      type: 'STORE',
      channel: 'test',
      timestamp,
      content,
    });
    assert.equal(status, 200, JSON.stringify(body));
    return cid;
  };
  let nowMs = 0;
  const pins = new PinList(await core.listen(), () => nowMs, 1);
  const newer = await pin('newer', nowSeconds);
  assert.deepEqual(await pins.readNew(signal), [newer]);
  const older = await pin('older', nowSeconds - 300);
  assert.deepEqual(await pins.readNew(signal), [newer], 'what is known ends a round');
  nowMs += HOUR_MS;
  assert.deepEqual((await pins.readNew(signal)).toSorted(), [newer, older].toSorted());
});

test('a core node that is away has not said that it keeps nothing', async () => {
  const core = await createTestCore();
  const url = await core.listen();
  const blocks = new CoreBlocks(url, new ByteRate(1_000_000));
  const cid = CID.parse(String(new Dag().put(Buffer.from('nobody has it'))));
  assert.equal(await blocks.isKept(cid), false);
  await core[Symbol.asyncDispose]();
  assert.equal(await blocks.isKept(cid), undefined);
  assert.equal(await blocks.has(cid), false);
});
