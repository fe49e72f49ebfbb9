import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import fc from 'fast-check';
import { acceptMessage } from '../messages/kinds.ts';
import { signers } from '../testing.ts';
import { inlineVerifier } from '../verify/verifier.ts';
import { pickAddresses } from './addresses.ts';
import { connectLine, createTestGossip } from './testing.ts';

const { alice } = signers;
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: { n } } });

describe('gossip', () => {
  test('a message reaches a node two steps away; a forged one reaches nobody and costs its sender', async () => {
    await using stack = new AsyncDisposableStack();
    const nodes = await Promise.all([1, 2, 3].map((seed) => createTestGossip(stack, seed)));
    const [first, middle, last] = nodes as [(typeof nodes)[0], (typeof nodes)[0], (typeof nodes)[0]];
    await connectLine(nodes);
    // Subscriptions travel after the connection: what comes before them is lost, and gossip promises nothing.
    for (let n = 0; last.core.rooms.sync.set.index.size === 0; n++) {
      await first.core.send(alice, note(n));
      await Promise.race([last.nextKept(), new Promise((done) => setTimeout(done, 200))]);
      assert.ok(n < 200, 'the mesh forms');
    }
    const sent = (await first.core.send(alice, note(1_000))).body.item_hash;
    const isThere = async () => (await last.core.get(`/messages/${sent}/status`)).status === 200;
    while (!(await isThere()))
      await Promise.race([last.nextKept(), new Promise((done) => setTimeout(done, 100))]);

    const accepted = acceptMessage(
      await inlineVerifier.verify(Buffer.from(signMessage(note(2), alice).body), 2 ** 31),
    );
    const before = [middle, last].map(({ core }) => core.rooms.sync.set.index.size);
    for (let n = 0; n < 6; n++) {
      const sourceText = accepted.message.sourceText!.replace('"n":2', `"n":${n + 3}`);
      first.gossip.publish([{ ...accepted, message: { ...accepted.message, sourceText } }]);
    }
    await middle.until(() => middle.gossip.counts.forged >= 5);
    await middle.until(() => middle.gossip.counts.connected === 1);
    assert.deepEqual(
      [middle, last].map(({ core }) => core.rooms.sync.set.index.size),
      before,
    );
    assert.equal(last.gossip.counts.forged, 0, 'nobody passed them on');
  });

  test('addresses are picked from whatever strangers list', () => {
    const good = '/ip4/1.2.3.4/tcp/4025/p2p/12D3KooWGRUtestabc';
    assert.deepEqual(pickAddresses([good, good, 7, null, '/ip4/1.2.3.4', `${good} x`, {}]), [good]);
    fc.assert(
      fc.property(fc.array(fc.anything()), (values) =>
        pickAddresses(values).every((one) => one.startsWith('/')),
      ),
    );
  });
});
