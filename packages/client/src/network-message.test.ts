import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  convertNetworkContent,
  isNetworkForm,
  LIMITS,
  parseNetworkMessage,
  readContentHead,
  scanJsonObject,
  verifyNetworkMessage,
} from '@skerry/protocol';
import fc from 'fast-check';
import { DEFAULT_CHANNEL } from './message.ts';
import { buildNetworkMessage, type NetworkDraft } from './network-message.ts';
import { createSigner, generatePrivateKey } from './signer.ts';

const signer = createSigner(generatePrivateKey());
const NOW = 1_800_000_000;

/** A body as a node reads it. */
function receive(draft: NetworkDraft) {
  const { body, itemHash } = buildNetworkMessage(draft, signer);
  const { value } = scanJsonObject(body);
  assert.equal(isNetworkForm(value.message), true);
  const verified = verifyNetworkMessage(parseNetworkMessage(value.message), NOW);
  assert.equal(verified.itemHash, itemHash);
  return { verified, sync: value.sync };
}

test('what the client builds, the protocol verifies, under the hash that the client foretold', () => {
  const content = fc.dictionary(
    fc
      .string({ minLength: 1 })
      .filter((key) => !['__proto__', 'address', 'time'].includes(key) && !key.includes('\0')),
    fc.jsonValue({ maxDepth: 3 }),
  );
  fc.assert(
    fc.property(content, fc.double({ min: 0, max: NOW, noNaN: true }), (extra, time) => {
      // NUL cannot travel; its escape is refused.
      fc.pre(!JSON.stringify(extra).includes('\\u0000') && !JSON.stringify(extra).includes('"__proto__"'));
      const { verified } = receive({ type: 'POST', content: extra, time });
      assert.deepEqual(
        verified.content,
        JSON.parse(JSON.stringify({ address: signer.address, time, ...extra })),
      );
      assert.deepEqual(readContentHead(verified.content!), {
        address: signer.address,
        time: Object.is(time, -0) ? 0 : time,
      });
      assert.equal(verified.sender, signer.address);
    }),
    { numRuns: 100 },
  );
});

test('each type goes through to what it means', () => {
  const hash = 'ab'.repeat(32);
  const contents = {
    POST: { type: 'note', content: { body: 'é "quoted" \u2028' } },
    AGGREGATE: { key: 'k', content: { a: 1 } },
    STORE: { item_type: 'storage', item_hash: hash },
    FORGET: { hashes: [hash] },
  };
  for (const [type, content] of Object.entries(contents)) {
    const { verified } = receive({ type, content, time: NOW });
    const converted = convertNetworkContent(verified.type, verified.itemHash, verified.content);
    assert.deepEqual(converted.content, { ...content, address: signer.address });
  }
});

test('channel, time, sync and another owner', () => {
  const content = { type: 'x' };
  assert.deepEqual(receive({ type: 'POST', content, time: NOW }).sync, false);
  assert.deepEqual(receive({ type: 'POST', content, time: NOW, sync: true }).sync, true);
  assert.equal(receive({ type: 'POST', content, time: NOW }).verified.channel, DEFAULT_CHANNEL);
  assert.equal(receive({ type: 'POST', content, time: NOW, channel: null }).verified.channel, null);
  const other = receive({
    type: 'POST',
    content: { ...content, address: '0xOther', time: 1.5 },
    time: NOW,
  }).verified;
  assert.deepEqual(readContentHead(other.content!), { address: '0xOther', time: 1.5 });
  const { body } = buildNetworkMessage({ type: 'POST', content }, signer);
  const { time } = parseNetworkMessage(JSON.parse(body).message);
  assert.ok(Math.abs(time - Date.now() / 1000) < 60);
});

test('what is too long to travel inline is refused here', () => {
  const content = { type: 'x', content: 'x'.repeat(LIMITS.inlineContentChars) };
  assert.throws(() => buildNetworkMessage({ type: 'POST', content }, signer), { code: 'INVALID_CONTENT' });
});
