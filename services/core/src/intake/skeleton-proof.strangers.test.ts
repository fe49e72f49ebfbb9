import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, buildStoredMessage, signMessage } from '@skerry/client';
import { itemHashOfUpload, sha256Hex } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const { alice, bob } = signers;
const T0 = 1_700_000_000;

type Said = Readonly<Record<string, unknown>>;

const frameOf = (forgotten: Said) => Buffer.from(JSON.stringify({ forgotten }));

/** What is left of a message of the network form, as an honest node tells of it. */
function networkSkeleton(text = 'erased'): Said {
  const content = { type: 'note', content: text };
  const { body } = buildNetworkMessage({ type: 'POST', time: T0, content }, alice);
  const { item_type: _, item_content: __, ...message } = JSON.parse(body).message;
  return {
    ...{ form: 'network', signed_sender: null, owner: message.sender, channel: null },
    ...{ content_type: 'note', subject: null, tags: [], noted_ms: T0 * 1000, ...message },
  };
}

function uploadSkeleton(): Said {
  const fileHash = sha256Hex(randomBytes(8));
  const { address: sender } = alice;
  return {
    ...{ form: 'upload', item_hash: itemHashOfUpload(fileHash, sender), chain: 'ETH', sender },
    ...{ signed_sender: null, owner: sender, type: 'STORE', channel: 'files', time: T0, content_type: null },
    ...{ subject: fileHash, tags: [], signature: alice.sign(fileHash), noted_ms: T0 * 1000 },
  };
}

function envelopeSkeleton(): Said {
  const content = { type: 'note', content: randomBytes(8).toString('hex') };
  const { itemHash, body } = signMessage({ type: 'POST', timestamp: T0, content }, alice);
  const { signature } = JSON.parse(body);
  const { address: sender } = alice;
  return {
    ...{ form: 'envelope', item_hash: itemHash, chain: 'ETH', sender, signed_sender: null, owner: sender },
    ...{ type: 'POST', channel: 'test', time: T0, content_type: 'note', subject: null, tags: [] },
    ...{ signature, noted_ms: null },
  };
}

describe('what is left of a forgotten message, as a peer tells of it', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const keep = async (one: Said) => {
    const { peer } = core.rooms.intake;
    await peer.keep(await peer.read([frameOf(one)]));
    await core.rooms.pipeline.idle();
  };
  const rowOf = (itemHash: string) =>
    core.rooms.db
      .selectFrom('messages')
      .selectAll()
      .where('item_hash', '=', itemHash)
      .executeTakeFirstOrThrow();
  const readAll = (frames: readonly Buffer[]) => core.rooms.intake.peer.read(frames);

  test('is taken where its sender signed it, as far as the signature covers what is left', async () => {
    const skeletons = [networkSkeleton(), uploadSkeleton(), envelopeSkeleton()];
    const read = await readAll(skeletons.map(frameOf));
    assert.deepEqual(
      read.map((one) => ('fault' in one ? one.fault : one.accepted.message.itemHash)),
      skeletons.map(({ item_hash }) => item_hash),
    );
  });

  test('is forged where its sender did not', async () => {
    const [network, upload, envelope] = [networkSkeleton(), uploadSkeleton(), envelopeSkeleton()];
    const signedByBob = bob.sign(`ETH\n${bob.address}\nPOST\n${network.item_hash}`);
    const lies: Record<string, Said> = {
      'a signature of another text': { ...network, signature: alice.sign('another') },
      'no signature': { ...network, signature: '' },
      'another sender': { ...network, sender: bob.address },
      'a sender who did not sign, beside the one who did': {
        ...{ ...network, signed_sender: bob.address, signature: signedByBob },
      },
      'another type': { ...network, type: 'STORE' },
      'another hash': { ...network, item_hash: sha256Hex('another') },
      'an upload that another one signed': { ...upload, signature: bob.sign(`${upload.subject}`) },
      'an upload of another file': { ...upload, subject: sha256Hex('another') },
      'an upload of no file': { ...upload, subject: null },
      'an upload by another hash': { ...upload, item_hash: sha256Hex('another') },
      'an upload of another type': { ...upload, type: 'POST' },
      'an envelope without a hash': { ...envelope, item_hash: 'Qm' },
      'an envelope by no address': { ...envelope, sender: 'alice' },
      'an address in another spelling': {
        ...envelope,
        sender: alice.address.toUpperCase().replace('X', 'x'),
      },
      'an envelope at half a second': { ...envelope, time: T0 + 0.5 },
    };
    const read = await readAll(Object.values(lies).map(frameOf));
    const found = Object.keys(lies).map((why, at) => [why, read[at]]);
    assert.deepEqual(
      found,
      Object.keys(lies).map((why) => [why, { fault: 'forged' }]),
    );
  });

  test('is refused under a name that is no hash', async () => {
    const frame = frameOf({ ...networkSkeleton(), item_hash: 'messages_by_status' });
    assert.deepEqual(await readAll([frame]), [{ fault: 'refused' }]);
  });

  test('has no text that the database cannot keep', async () => {
    const skeleton = envelopeSkeleton();
    for (const name of ['channel', 'owner', 'subject', 'signature', 'content_type', 'type'])
      for (const text of ['a\0', '\ud800'])
        assert.deepEqual(
          await readAll([frameOf({ ...skeleton, [name]: text })]),
          [{ fault: 'forged' }],
          `${name} ${JSON.stringify(text)}`,
        );
  });

  test('waits for its time, as every message does', async () => {
    const time = Math.floor(core.rooms.now() / 1000) + 3_600;
    for (const skeleton of [networkSkeleton(), uploadSkeleton(), envelopeSkeleton()])
      assert.deepEqual(
        await readAll([frameOf({ ...skeleton, time })]),
        [{ fault: 'later' }],
        `${skeleton.form}`,
      );
  });

  /** What is kept in the end, for both orders. @param make anew for each of them: two that say different things of one message */
  async function keepBothWays(make: (name: string) => Promise<[Said, Said]> | [Said, Said]) {
    const kept = [];
    for (const isReversed of [false, true]) {
      const said = await make(`${randomBytes(8).toString('hex')}`);
      for (const one of isReversed ? said.toReversed() : said) await keep(one);
      const { form, channel, time, sender, status } = await rowOf(`${said[0].item_hash}`);
      kept.push({ form, channel, time, sender, status });
    }
    return kept;
  }

  /** The same message by any key: of the network form a signature covers no more than the hash. */
  function signedBy(signer: typeof alice, said: Said, changed: Said = {}): Said {
    const { address: sender } = signer;
    const signature = signer.sign(`ETH\n${sender}\nPOST\n${said.item_hash}`);
    return { ...said, form: 'network', sender, owner: sender, signature, ...changed };
  }

  test('is who signed it, whatever word of the same sender says otherwise, and whichever was heard first', async () => {
    const [first, second] = await keepBothWays((name) => {
      const signed = networkSkeleton(name);
      const lied = { item_hash: signed.item_hash, channel: 'lied', time: T0 - 5 };
      return [signed, { ...envelopeSkeleton(), ...lied }];
    });
    assert.deepEqual(second, first);
    const { form, channel, sender } = first!;
    assert.deepEqual([form, channel, sender], ['network', 'skerry', alice.address]);
  });

  test('stays where another key signs the same hash, whatever date and owner a peer tells of it', async () => {
    for (const make of [networkSkeleton, envelopeSkeleton])
      for (const owner of [bob.address, alice.address]) {
        const said = make === networkSkeleton ? networkSkeleton(`stays ${owner}`) : envelopeSkeleton();
        await keep(said);
        const before = await rowOf(`${said.item_hash}`);
        await keep(signedBy(bob, said, { owner, noted_ms: 0, time: T0 - 5 }));
        assert.deepEqual(await rowOf(`${said.item_hash}`), before, `${said.form}`);
      }
  });

  test('is of two who may sign for one owner the earlier one, whichever was heard first', async () => {
    const authorizations = [{ address: bob.address }];
    await core.send(alice, {
      ...{ type: 'AGGREGATE', time: T0 - 1_000, content: { key: 'security', content: { authorizations } } },
    });
    const time = Math.floor(core.rooms.now() / 1000);
    const [first, second] = await keepBothWays((name) => {
      const said = { ...networkSkeleton(name), time, noted_ms: time * 1000 };
      return [said, signedBy(bob, said, { owner: alice.address, noted_ms: time * 1000 + 1_000_000 })];
    });
    assert.deepEqual(second, first);
    assert.equal(first!.sender, alice.address);
    const [third, fourth] = await keepBothWays((name) => {
      const said = { ...networkSkeleton(name), time, noted_ms: time * 1000 + 1_000_000 };
      return [said, signedBy(bob, said, { owner: alice.address, noted_ms: time * 1000 })];
    });
    assert.deepEqual(fourth, third);
    assert.equal(third!.sender, bob.address);
  });

  test('of a content that is a file is taken, too', async () => {
    const { body } = buildStoredMessage({ type: 'POST', content: { type: 'note', content: 'file' } }, alice);
    const { item_type: _, ...message } = JSON.parse(body).message;
    const [read] = await readAll([frameOf({ ...networkSkeleton(), ...message })]);
    assert.ok(read && 'accepted' in read);
  });
});
