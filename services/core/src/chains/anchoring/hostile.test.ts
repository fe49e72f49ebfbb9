import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { FaultProxy } from '@skerry/indexer/testing';
import { until } from '@skerry/kit/testing/until';
import { signers } from '../../testing/core.ts';
import { archiveOf, syncContentOf } from './archive.ts';
import { areRight, confirmationsOf, createAnchoredCore, TestChain } from './testing/setup.ts';

const NOBODY = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';

function archived(n: number, forge = false) {
  const { body, itemHash } = signMessage(
    { type: 'POST', channel: 'hostile', content: { type: 'note', content: n } },
    signers.bob,
  );
  const { signature, address } = JSON.parse(body) as { signature: string; address: string };
  const signedText = /^\{"message":(.*),"signature"/s.exec(body)![1]!;
  const text = forge ? signedText.replace('hostile', 'forged!') : signedText;
  return { itemHash, text: JSON.stringify({ signed_text: text, signature, address }) };
}

test('archives of whatever kind cost themselves and nothing else', async () => {
  await using chain = await TestChain.start();
  let aheadMs = 0;
  await using node = await createAnchoredCore(await chain.settings({ horizonSeconds: 290 }), {
    now: () => Date.now() + aheadMs,
  });
  const { core } = node;
  const add = async (bytes: Buffer) =>
    (
      await core.rooms.ipfs.add(Readable.from([bytes]), {
        cidVersion: 0,
        limitBytes: 1 << 30,
        signal: new AbortController().signal,
      })
    ).id.text;
  const good = [archived(1), archived(2)];
  const forged = archived(3, true);
  const mixed = archiveOf([good[0]!.text, forged.text, '{}', good[1]!.text]);
  const emitted: [string, string][] = [
    ['ARCHIVE_UNAVAILABLE', syncContentOf(NOBODY)],
    ['ARCHIVE_INVALID', 'not JSON'],
    [
      'ARCHIVE_INVALID',
      JSON.stringify({ protocol: 'aleph-offchain', version: 1, content: '../../etc/passwd' }),
    ],
    ['ARCHIVE_INVALID', syncContentOf(await add(Buffer.from('{"no": "archive"}')))],
    ['ARCHIVE_INVALID', syncContentOf(await add(Buffer.alloc(300_000, '[')))],
    ['ARCHIVE_NESTED', syncContentOf(await add(Buffer.from(syncContentOf(await add(mixed)))))],
    ['', syncContentOf(await add(mixed))],
    ['', archiveOf([archived(4).text]).toString()],
  ];
  for (const [, content] of emitted) await chain.emit(content);
  await chain.emitAsStranger(syncContentOf(await add(archiveOf([archived(5).text]))));
  await chain.anvil.mine(2);
  const outcomes = async () =>
    (await core.rooms.db.selectFrom('anchor_events').selectAll().orderBy('log_index').execute()).map(
      ({ state, reason }) => (state === 'refused' ? reason!.code : state),
    );
  const expected = [...emitted.map(([code]) => code || 'processed'), 'EMITTER_NOT_AUTHORIZED'];
  const isOneLeft = ([lost, ...rest]: readonly string[]) =>
    lost === 'waiting' && rest.length === 8 && rest.every((one) => one !== 'waiting');
  await until('all but the lost one are settled', outcomes, isOneLeft);
  assert.ok(
    await areRight(
      chain,
      core,
      good.map(({ itemHash }) => itemHash),
    ),
  );
  assert.equal((await core.get(`/messages/${forged.itemHash}`)).status, 404);
  assert.equal(node.anchoring.invalid, 2);
  aheadMs = 3_600_000;
  await until('the lost one is given up', outcomes, ([lost]) => lost !== 'waiting');
  assert.deepEqual(await outcomes(), expected);
  assert.equal((await core.get('/health')).status, 200);
});

/** As fast as it is looked, and slower after so many: however slow the machine is, the chain stays within its depth of finality. */
const HASTY_BLOCKS = 350;
const BLOCK_MS = 250;

test('endpoints that fail in many ways are survived; the confirmations are right in the end', async () => {
  await using chain = await TestChain.start();
  await using good = await FaultProxy.start(chain.anvil.url);
  await using bad = await FaultProxy.start(chain.anvil.url);
  const faults = ['rate_limit', 'unavailable', 'no_batches'] as const;
  let turn = 0;
  bad.choose = () => faults[turn++ % faults.length];
  good.choose = () => (turn++ % 7 === 0 ? 'unavailable' : undefined);
  await using node = await createAnchoredCore(
    await chain.settings({ endpoints: [bad.url, good.url], packs: true }),
  );
  const { core } = node;
  const sent = await core.send(signers.alice, {
    type: 'POST',
    channel: 'faults',
    content: { type: 'note', content: 1 },
  });
  const hash = sent.body.item_hash as string;
  const mined = async (what: string, isSo: () => Promise<boolean>) => {
    let [blocks, minedMs] = [0, 0];
    await until(what, async () => {
      if (blocks < HASTY_BLOCKS || performance.now() - minedMs > BLOCK_MS) {
        blocks++;
        minedMs = performance.now();
        await chain.anvil.mine();
      }
      return isSo();
    });
  };
  await mined('it is confirmed', () => areRight(chain, core, [hash]));
  const [before] = await confirmationsOf(core, hash);
  await chain.anvil.reorg((await chain.anvil.head()) - before!.height + 1);
  await mined('it is confirmed anew', async () => {
    const [now] = await confirmationsOf(core, hash);
    return now !== undefined && now.hash !== before!.hash && (await areRight(chain, core, [hash]));
  });
});
