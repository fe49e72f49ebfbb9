import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey, type Signer, signMessage } from '@skerry/client';
import {
  createVrfAnswer,
  NETWORK_POST,
  parseVrfRequest,
  pureVrfEngine,
  sharedText,
  verifySubmission,
  viewOfVrfAnswer,
} from '@skerry/protocol';
import { judgeDraw } from './random.ts';
import { listingNode } from './testing/listing.ts';

const prover = pureVrfEngine.find(3)!.createProver(new Uint8Array(32).fill(3));
const answer = viewOfVrfAnswer(createVrfAnswer(parseVrfRequest({ seed: 'any', min: 1, max: 6 }), prover));
const [node, stranger] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];

function announce(signer: Signer, public_key: string, timestamp: number) {
  const vrf_keys = [{ suite: 'any', public_key, from: 0, until: null }];
  const content = { type: NETWORK_POST.coreNode, content: { vrf_keys, announced_at_ms: timestamp * 1_000 } };
  const { body, itemHash } = signMessage({ type: 'POST', content, channel: 'net-core', timestamp }, signer);
  const shared = sharedText(verifySubmission(body, timestamp))!;
  return {
    ...{ item_hash: itemHash, item_type: 'inline', item_content: null, shared, content },
    ...{ type: 'POST', chain: 'ETH', sender: signer.address, signature: '', time: timestamp },
  };
}

const nobody = { value: [], source: 'unset' };
const trust = {
  ...{ schedulers: nobody, scoring_publishers: nobody, credit_publishers: nobody },
  ...{ known_core_nodes: { value: [node.address], source: 'setting' } },
  credit_enforcement: { value: false, source: 'unset' },
};
const info = {
  ...{ node_multi_addresses: [], name: 'node', version: '1', trust },
  address: createSigner(generatePrivateKey()).address,
};

test('whoever publishes the key of a core node a thousand times, under any date, does not hide whose it is', async () => {
  const own = announce(node, answer.public_key, 1_700_000_000);
  const copy = announce(stranger, answer.public_key, 5);
  const other = announce(stranger, 'a'.repeat(64), 5);
  await using core = await listingNode([...Array(600).fill(other), copy, own], undefined, info);
  const { owners, isCut, unknown, verdict } = await judgeDraw(core.url, answer);
  assert.deepEqual([verdict.valid, unknown, isCut], [true, null, true]);
  assert.deepEqual(
    owners.map(({ address, isKnown }) => [address, isKnown]),
    [[node.address, true]],
  );
  await using few = await listingNode([copy, own], undefined, info);
  const all = await judgeDraw(few.url, answer);
  assert.deepEqual(
    [all.isCut, ...all.owners.map(({ itemHash }) => itemHash)],
    [false, own.item_hash, copy.item_hash],
  );
});
