import assert from 'node:assert/strict';
import { createECDH, createHash, createPrivateKey, sign as signNatively } from 'node:crypto';
import { test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { base64, bech32, bech32m } from '@scure/base';
import { aminoSignDoc, cosmos } from './cosmos.ts';
import { describeFamily } from './testing/suite.ts';

const nodeHash = (name: string, bytes: Uint8Array | string) => createHash(name).update(bytes).digest();
const keyHashOf = (key: Uint8Array) => nodeHash('ripemd160', nodeHash('sha256', key));
const addressOf = (prefix: string, key: Uint8Array) => bech32.encodeFromBytes(prefix, keyHashOf(key));

const encodeWith = (key: Uint8Array) => (signature: Uint8Array) =>
  JSON.stringify({
    signature: base64.encode(signature),
    pub_key: { type: 'tendermint/PubKeySecp256k1', value: base64.encode(key) },
    account_number: '0',
    sequence: '0',
  });

const hash = new Uint8Array(20).fill(5);

describeFamily({
  name: 'Cosmos',
  family: cosmos,
  checksummed: true,
  createSignatory(secret) {
    const key = secp256k1.getPublicKey(secret);
    const address = addressOf('cosmos', key);
    return {
      address,
      sign: (text) =>
        secp256k1.sign(nodeHash('sha256', aminoSignDoc(text, address)), secret, { prehash: false }),
      encode: encodeWith(key),
    };
  },
  normalise: (signature) => JSON.stringify(JSON.parse(signature)),
  badAddresses: {
    '19 bytes': bech32.encodeFromBytes('cosmos', hash.subarray(1)),
    '32 bytes': bech32.encodeFromBytes('cosmos', new Uint8Array(32)),
    bech32m: bech32m.encodeFromBytes('cosmos', hash),
    'upper case': bech32.encodeFromBytes('cosmos', hash).toUpperCase(),
    'an odd prefix': bech32.encodeFromBytes('x-avax', hash),
  },
});

test('known addresses of public keys (CosmJS)', () => {
  const key = base64.decode('AtQaCqFnshaZQp6rIkvAPyzThvCvXSDO+9AzbxVErqJP');
  assert.equal(addressOf('cosmos', key), 'cosmos1h806c7khnvmjlywdrkdgk2vrayy2mmvf9rxk2r');
  assert.equal(
    cosmos.parseAddress('cosmos1h806c7khnvmjlywdrkdgk2vrayy2mmvf9rxk2r'),
    'cosmos1h806c7khnvmjlywdrkdgk2vrayy2mmvf9rxk2r',
  );
});

test('the sign document, byte for byte', () => {
  assert.equal(
    aminoSignDoc('a\n"b" <é> & \u2028', 'cosmos1x'),
    '{"account_number":"0","chain_id":"signed-message-v1","fee":{"amount":[],"gas":"0"},"memo":"",' +
      '"msgs":[{"type":"signutil/MsgSignText","value":{"message":"a\\n\\"b\\" \\u003cé\\u003e \\u0026 \u2028","signer":"cosmos1x"}}],"sequence":"0"}',
  );
});

test('signatures made by OpenSSL verify, with s in either half, under any prefix', () => {
  const secret = Buffer.alloc(32, 0x33);
  const ecdh = createECDH('secp256k1');
  ecdh.setPrivateKey(secret);
  const point = ecdh.getPublicKey();
  const key = Uint8Array.from(ecdh.getPublicKey(null, 'compressed'));
  const jwk = {
    kty: 'EC',
    crv: 'secp256k1',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
    d: secret.toString('base64url'),
  };
  const native = createPrivateKey({ key: jwk, format: 'jwk' });
  const order = secp256k1.Point.Fn.ORDER;
  for (const prefix of ['cosmos', 'osmo', 'terra', 'secret']) {
    const address = addressOf(prefix, key);
    const text = `{"prefix":"${prefix}","quoted":"\\"<&>"}`;
    const doc = Buffer.from(aminoSignDoc(text, address));
    const signature = Uint8Array.from(
      signNatively('sha256', doc, { key: native, dsaEncoding: 'ieee-p1363' }),
    );
    const s = BigInt(`0x${Buffer.from(signature.subarray(32)).toString('hex')}`);
    const mirrored = Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex');
    assert.equal(cosmos.verify(text, encodeWith(key)(signature), address), true);
    const twin = Uint8Array.of(...signature.subarray(0, 32), ...mirrored);
    assert.equal(cosmos.verify(text, encodeWith(key)(twin), address), true);
    assert.equal(cosmos.verify(text, encodeWith(key)(signature), addressOf('other', key)), false);
  }
});

test("a document that names another signer than the key's is not that signer's", () => {
  const key = secp256k1.getPublicKey(new Uint8Array(32).fill(0x22));
  const victim = addressOf('cosmos', secp256k1.getPublicKey(new Uint8Array(32).fill(0x11)));
  const digest = nodeHash('sha256', aminoSignDoc('x', victim));
  const forged = secp256k1.sign(digest, new Uint8Array(32).fill(0x22), { prehash: false });
  assert.equal(cosmos.verify('x', encodeWith(key)(forged), victim), false);
  assert.equal(cosmos.verify('x', encodeWith(key)(forged), addressOf('cosmos', key)), false);
});

test('the JSON of a signature: account and sequence 0 or none, one kind of key, canonical base64', () => {
  const secret = new Uint8Array(32).fill(0x11);
  const key = secp256k1.getPublicKey(secret);
  const address = addressOf('cosmos', key);
  const digest = nodeHash('sha256', aminoSignDoc('x', address));
  const signature = base64.encode(secp256k1.sign(digest, secret, { prehash: false }));
  const pub_key = { type: 'tendermint/PubKeySecp256k1', value: base64.encode(key) };
  const verify = (fields: object) => cosmos.verify('x', JSON.stringify(fields), address);
  assert.equal(verify({ signature, pub_key }), true);
  const uncompressed = base64.encode(secp256k1.getPublicKey(secret, false));
  for (const bad of [
    { signature, pub_key, sequence: '1' },
    { signature, pub_key, account_number: 0 },
    { signature, pub_key, other: '' },
    { signature, pub_key: { ...pub_key, other: '' } },
    { signature, pub_key: { ...pub_key, type: 'tendermint/PubKeyEd25519' } },
    { signature, pub_key: { ...pub_key, value: uncompressed } },
    { signature, pub_key: pub_key.value },
    { signature: signature.replaceAll('=', ''), pub_key },
    { signature: ` ${signature}`, pub_key },
    { signature: `${signature.slice(0, -3)}${signature.at(-3) === 'B' ? 'C' : 'B'}==`, pub_key },
    { pub_key },
  ]) {
    assert.equal(verify(bad), false, JSON.stringify(bad));
  }
});
