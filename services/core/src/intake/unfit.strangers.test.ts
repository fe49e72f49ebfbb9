import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sha256Hex } from '@skerry/protocol';
import { digestState } from '../state/digest.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const { alice } = signers;
const T0 = 1_700_000_000;

/** A message whose content is a file that nobody can take: one node has the file before the message, another after it. */
describe('a message whose file says what nobody can take', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  beforeEach(() => clearMessages(core, ['files']));
  after(() => core[Symbol.asyncDispose]());

  async function keep(text: string): Promise<void> {
    const blob = await core.blobs.receive(Readable.from([Buffer.from(text)]), 1_000_000);
    await core.rooms.files.storeUnpinned(blob, 'application/json');
    await blob.discard();
  }

  function messageOf(type: string, content: object) {
    const text = JSON.stringify({ address: alice.address, time: T0, ...content });
    const itemHash = sha256Hex(text);
    const message = {
      ...{ chain: 'ETH', sender: alice.address, type, time: T0, item_type: 'storage', item_hash: itemHash },
      signature: alice.sign(`ETH\n${alice.address}\n${type}\n${itemHash}`),
    };
    return { text, itemHash, frame: JSON.stringify({ message, noted_ms: T0 * 1000 }) };
  }
  const withKey = {
    ...{ allow_amend: false, metadata: { name: 'm' }, authorized_keys: ['x'], variables: {}, volumes: [] },
    ...{
      resources: { vcpus: 1, memory: 1024, seconds: 30 },
      environment: { internet: true, aleph_api: true },
    },
    rootfs: { parent: { ref: '0'.repeat(64), use_latest: true }, persistence: 'host', size_mib: 4096 },
  };
  const unfit = [
    ['INVALID_SSH_KEY', messageOf('INSTANCE', withKey)],
    ['INVALID_CONTENT', messageOf('POST', { type: 7 })],
    ['UNKNOWN_FIELD', messageOf('POST', { type: 'note', content: {}, colour: 1 })],
  ] as const;

  async function look(itemHash: string) {
    await core.rooms.pipeline.idle();
    const { status, reason } = await core.rooms.db
      .selectFrom('messages')
      .select(['status', 'reason'])
      .where('item_hash', '=', itemHash)
      .executeTakeFirstOrThrow();
    const { cursor: _, ...digest } = await digestState(core.rooms.db);
    return { status, code: reason?.code, digest };
  }

  test('is rejected whichever came first, and nodes that have it are in step', async () => {
    for (const [code, { text, itemHash, frame }] of unfit) {
      const looks = [];
      for (const isFileFirst of [true, false]) {
        await clearMessages(core, ['files']);
        if (isFileFirst) await keep(text);
        const { peer } = core.rooms.intake;
        await peer.keep(await peer.read([Buffer.from(frame)]));
        await core.rooms.pipeline.idle();
        if (!isFileFirst) await keep(text);
        looks.push(await look(itemHash));
      }
      assert.deepEqual([looks[0]!.status, looks[0]!.code], ['rejected', code]);
      assert.deepEqual(looks[1], looks[0]);
    }
  });

  test('holds up nothing that a peer sends with it', async () => {
    const fit = messageOf('POST', { type: 'note', content: {} });
    for (const [, { text }] of unfit) await keep(text);
    await keep(fit.text);
    const frames = [...unfit.map(([, { frame }]) => frame), fit.frame];
    const { offer } = core.rooms.intake;
    const { taken } = await offer.keep(await offer.read(frames.map((frame) => Buffer.from(frame))));
    assert.equal(taken, 4);
    assert.equal((await look(fit.itemHash)).status, 'processed');
  });

  test('a private message is refused, whatever its file says', async () => {
    const { text, frame } = messageOf('WEBHOOK', {});
    await keep(text);
    assert.deepEqual(await core.rooms.intake.peer.read([Buffer.from(frame)]), [{ fault: 'refused' }]);
  });
});
