import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effectiveTime, NETWORK_CHANNEL, NETWORK_POST, sharedText, verifySubmission } from '@skerry/protocol';
import { signMessage } from '../message.ts';
import { buildNetworkMessage } from '../network-message.ts';
import { createSigner } from '../signer.ts';
import { readSaidAllocation } from './said-placement.ts';

const scheduler = createSigner(`0x${'1'.repeat(64)}`);
const T0 = 1_700_000_000;
const NOTED_MS = (T0 + 3_600) * 1_000;
const nowhere = 'http://127.0.0.1:9';
const placement = {
  ...{ instance_id: 'a'.repeat(64), node_id: null, node_address: null, ipv6: '', reason: null },
  decided_at_ms: T0 * 1_000,
};
const content = { type: NETWORK_POST.allocation, content: placement };

/** As a core node lists it that first had it an hour after its date. */
function listed(body: string) {
  const signed = verifySubmission(body, T0 + 10);
  const { itemHash, sender, signature, form, sourceText } = signed;
  const isNetwork = form === 'network';
  return {
    ...{ item_hash: itemHash, sender, signature, chain: 'ETH', type: 'POST', time: T0 },
    ...{ channel: NETWORK_CHANNEL.scheduling, content: signed.content, item_type: 'inline' as const },
    item_content: isNetwork ? sourceText : JSON.stringify(signed.content),
    shared: sharedText({ ...signed, notedMs: NOTED_MS })!,
  };
}

test('a placement with a date of before it was there is known as late, in whatever form it was signed', async () => {
  const draft = { type: 'POST', channel: NETWORK_CHANNEL.scheduling, content };
  for (const { body } of [
    buildNetworkMessage({ ...draft, time: T0 }, scheduler),
    signMessage({ ...draft, timestamp: T0 }, scheduler),
  ]) {
    const row = listed(body);
    const said = await readSaidAllocation(nowhere, row);
    assert.deepEqual(said?.content, placement);
    assert.equal(effectiveTime(said), NOTED_MS / 1_000);
    // Of a text that is too long for lists, or a node that does not tell it, nobody knows.
    const { shared: _, ...untold } = row;
    for (const one of [untold, { ...untold, shared: null }])
      assert.equal(await readSaidAllocation(nowhere, one), undefined);
  }
});
