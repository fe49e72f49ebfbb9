import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { nodeIdOf } from './content/network.ts';
import { AppError } from './errors.ts';
import { evmAddressOf } from './evm/address.ts';
import { personalSignDigest } from './evm/personal-digest.ts';
import { sha256Hex } from './hash.ts';
import { bytesToHex, hexToBytes } from './hex.ts';
import { instanceAddress, isInstanceAddress } from './instance-address.ts';
import {
  createNodeProof,
  type NodeProofClaim,
  nodeProofAddress,
  nodeProofText,
  parseChallenge,
  parseNodeUrl,
  provesNode,
} from './node-proof.ts';

function keyOf(name: string) {
  const secret = hexToBytes(sha256Hex(name))!;
  const address = evmAddressOf(secp256k1.getPublicKey(secret, false));
  const sign = (text: string) => {
    const signature = secp256k1.sign(personalSignDigest(text), secret, {
      prehash: false,
      format: 'recovered',
    });
    return `0x${bytesToHex(signature.subarray(1))}${bytesToHex(Uint8Array.of(27 + signature[0]!))}`;
  };
  return { address, nodeId: nodeIdOf(address), sign };
}

const [honest, liar] = [keyOf('honest'), keyOf('liar')];
const challenge = 'ab'.repeat(32);
const claim: NodeProofClaim = { nodeId: honest.nodeId, place: 'https://node.example', challenge };
const bytesOf = (proof: unknown) => Buffer.from(JSON.stringify(proof));
const proof = createNodeProof(claim, honest.sign);

describe('H3: a proof', () => {
  test('H3: is of the key, for one node, one place and one challenge', () => {
    assert.ok(provesNode(bytesOf(proof), claim, honest.address));
    assert.ok(provesNode(bytesOf(proof), claim, honest.address.toUpperCase().replace('0X', '0x')));
    const others: [NodeProofClaim, string][] = [
      // Replayed to another question, for another place, or passed on by somebody else.
      [{ ...claim, challenge: 'cd'.repeat(32) }, honest.address],
      [{ ...claim, place: 'https://liar.example' }, honest.address],
      [{ ...claim, place: nodeProofAddress('2001:db8::/64') }, honest.address],
      [{ ...claim, nodeId: liar.nodeId }, liar.address],
      [claim, liar.address],
    ];
    for (const [other, address] of others) assert.equal(provesNode(bytesOf(proof), other, address), false);
    const forged = createNodeProof(claim, liar.sign);
    assert.equal(provesNode(bytesOf(forged), claim, honest.address), false);
  });

  test('H3: no text of it can be read as another one', () => {
    const line = fc.stringMatching(/^[^\n]{0,40}$/);
    const anyClaim = fc.record({ nodeId: line, place: line, challenge: line });
    fc.assert(
      fc.property(anyClaim, anyClaim, (a, b) => {
        if (nodeProofText(a) === nodeProofText(b)) assert.deepEqual(a, b);
      }),
    );
  });

  test('H3: nothing that a stranger answers breaks the verifier, and nothing else proves anything', () => {
    const holds = (value: unknown) => provesNode(bytesOf(value ?? null), claim, honest.address);
    fc.assert(fc.property(fc.jsonValue(), (value) => !holds(value)));
    fc.assert(fc.property(fc.uint8Array(), (bytes) => !provesNode(bytes, claim, honest.address)));
    fc.assert(
      fc.property(fc.stringMatching(/^0x[0-9a-f]{130}$/), (signature) => !holds({ ...proof, signature })),
    );
    assert.ok(
      !provesNode(Buffer.from(`${JSON.stringify(proof)}${' '.repeat(9_000)}`), claim, honest.address),
    );
    assert.ok(!provesNode(bytesOf([proof]), claim, honest.address));
  });

  test('H3: challenges and URLs have one spelling, or are refused with a code', () => {
    for (const bad of ['', 'AB'.repeat(32), 'ab'.repeat(31), `${'ab'.repeat(32)}\n`, '../../secret'])
      assert.throws(() => parseChallenge(bad), { code: 'INVALID_PARAMETERS' });
    assert.equal(parseNodeUrl('HTTPS://Node.Example:443/a/'), 'https://node.example/a');
    for (const bad of [
      'ftp://a',
      'http://u:p@a',
      'http://a?b',
      'http://a#b',
      'a',
      '',
      `http://a/${'a'.repeat(3_000)}`,
      // As it is asked for, it is longer.
      `http://a/${'é'.repeat(1_000)}`,
    ])
      assert.throws(() => parseNodeUrl(bad), { code: 'INVALID_CONTENT' });
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.webUrl({ withFragments: true, withQueryParameters: true })),
        (text) => {
          try {
            const url = parseNodeUrl(text);
            assert.equal(parseNodeUrl(url), url);
            assert.ok(!url.includes('\n'));
          } catch (error) {
            assert.ok(error instanceof AppError);
          }
        },
      ),
    );
  });
});

describe('H3: the address inside a prefix', () => {
  const prefix = fc
    .tuple(...Array.from({ length: 4 }, () => fc.integer({ min: 0, max: 0xffff })))
    .map((groups) => `${groups.map((group) => group.toString(16)).join(':')}::/64`);
  const hash = fc.stringMatching(/^[0-9a-f]{64}$/);

  test('H3: is one of the node, and never of an instance', () => {
    assert.equal(nodeProofAddress('2001:db8:1:2::/64'), '2001:db8:1:2:ffff::1');
    fc.assert(
      fc.property(prefix, hash, (network, id) => {
        const address = nodeProofAddress(network);
        const { guest } = instanceAddress(network, id);
        assert.notEqual(address, guest);
        assert.ok(!isInstanceAddress(address, id));
        assert.ok(isInstanceAddress(guest, id));
      }),
    );
  });

  test('H3: what is no /64 is refused with a code', () => {
    for (const bad of [
      '::/0',
      '2001:db8::/63',
      '2001:db8::1/64',
      'fe80::%eth0/64',
      '1.2.3.4/24',
      '',
      '/64',
      '::/64/64',
    ])
      assert.throws(() => nodeProofAddress(bad), { code: 'INVALID_ADDRESS' });
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          nodeProofAddress(text);
        } catch (error) {
          assert.ok(error instanceof AppError);
        }
      }),
    );
    fc.assert(fc.property(fc.string(), hash, (text, id) => !isInstanceAddress(text, id)));
  });
});
