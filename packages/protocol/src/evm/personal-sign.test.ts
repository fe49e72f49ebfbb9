import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { bytesToHex } from '../hex.ts';
import { checksumAddress, evmAddressOf, parseEvmAddress, parseTypedEvmAddress } from './address.ts';
import { personalSignDigest } from './personal-digest.ts';
import { recoverPersonalSigner } from './personal-sign.ts';
import { loadNativeEngine } from './secp256k1-node.ts';
import { pureEngine } from './secp256k1-pure.ts';
import { loadSystemEngine } from './secp256k1-system.ts';

const system = loadSystemEngine();
const native = loadNativeEngine();
const engines = [system, native, pureEngine].filter((engine) => engine !== undefined);
const hex = (bytes: Uint8Array) => `0x${bytesToHex(bytes)}`;
const secretKey = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .filter((bytes) => secp256k1.utils.isValidSecretKey(bytes));

/** r, s, v as wallets write them. */
function sign(text: string, key: Uint8Array): Uint8Array {
  const recovered = secp256k1.sign(personalSignDigest(text), key, { prehash: false, format: 'recovered' });
  return Uint8Array.of(...recovered.subarray(1), 27 + recovered[0]!);
}

test('the native engine is the one in use where its platform has a build', () => {
  const hasBuild = process.platform === 'linux' && process.arch === 'x64';
  assert.equal(native !== undefined, hasBuild);
});

for (const engine of engines) {
  describe(`personal_sign with the ${engine.name} engine`, () => {
    test('a known signature (web3.js documentation: accounts.sign "Some data")', () => {
      const signature =
        '0xb91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a0291c';
      assert.equal(
        recoverPersonalSigner('Some data', signature, engine),
        '0x2c7536e3605d9c16a7a3d7b1898e529396a65c23',
      );
    });

    test('gives back the signer of any text, with 0x or without, v of either kind', () => {
      fc.assert(
        fc.property(fc.string({ unit: 'grapheme' }), secretKey, (text, key) => {
          const address = evmAddressOf(secp256k1.getPublicKey(key, false));
          const signature = sign(text, key);
          assert.equal(recoverPersonalSigner(text, hex(signature), engine), address);
          signature[64]! -= 27;
          assert.equal(recoverPersonalSigner(text, hex(signature).slice(2).toUpperCase(), engine), address);
        }),
        { numRuns: 20 },
      );
    });

    test('never takes a signature that is malformed or out of range', () => {
      const key = new Uint8Array(32).fill(7);
      const good = sign('x', key);
      const order = Uint8Array.from(Buffer.from(secp256k1.Point.Fn.ORDER.toString(16), 'hex'));
      const withScalar = (at: number, scalar: Uint8Array) =>
        Uint8Array.of(...good.subarray(0, at), ...scalar, ...good.subarray(at + 32));
      const bad = [
        '',
        '0x',
        '0xzz',
        hex(good).slice(0, -2),
        `${hex(good)}00`,
        hex(withScalar(0, new Uint8Array(32))),
        hex(withScalar(32, new Uint8Array(32))),
        hex(withScalar(0, order)),
        hex(withScalar(32, order)),
        ...[2, 3, 26, 29, 30, 255].map((v) => hex(Uint8Array.of(...good.subarray(0, 64), v))),
      ];
      for (const signature of bad)
        assert.equal(recoverPersonalSigner('x', signature, engine), undefined, signature);
    });
  });
}

/** Where Debian, and what follows it, has libraries. */
const LIBRARIES = `/usr/lib/${{ x64: 'x86_64', arm64: 'aarch64' }[process.arch as string]}-linux-gnu`;

test('the library of the system is the one in use where there is one, and Node warns of nothing', () => {
  const isHere =
    existsSync(LIBRARIES) && readdirSync(LIBRARIES).some((name) => /^libsecp256k1\.so\.[1256]$/.test(name));
  assert.equal(system !== undefined, isHere);
  const code = `const { engine } = await import(${JSON.stringify(import.meta.resolve('./secp256k1-node.ts'))}); console.log(engine.name);`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  });
  assert.deepEqual([stdout.trim(), stderr], [engines[0]!.name, '']);
});

test('no engine ends the process over a recovery id that nobody checked', () => {
  const ones = new Uint8Array(64).fill(1);
  for (const engine of engines)
    assert.equal(engine.recover(ones.subarray(32), ones, 5 as 0), undefined, engine.name);
});

test('all engines agree on every signature, valid or not', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 65, maxLength: 65 }), fc.boolean(), (bytes, odd) => {
      bytes[64] = odd ? 28 : 27;
      const answers = new Set(engines.map((engine) => recoverPersonalSigner('text', hex(bytes), engine)));
      assert.equal(answers.size, 1);
    }),
    { numRuns: 200 },
  );
});

test('an address that was typed has the checksum that its capital letters are, or none', () => {
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const digits = address.slice(2);
  for (const typed of [address, `0x${digits.toLowerCase()}`, `0x${digits.toUpperCase()}`])
    assert.equal(parseTypedEvmAddress(typed), address.toLowerCase());
  for (const wrong of [address.replace('5aA', '6aA'), address.replace('Aed', 'aed'), address.slice(0, -1)])
    assert.throws(() => parseTypedEvmAddress(wrong), { code: 'INVALID_ADDRESS' });
});

test('addresses: any case is accepted, one spelling is kept, the checksum form is for people (ERC-55 vectors)', () => {
  for (const address of [
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  ]) {
    assert.equal(parseEvmAddress(address), address.toLowerCase());
    assert.equal(checksumAddress(parseEvmAddress(address.toUpperCase().replace('0X', '0x'))), address);
  }
  for (const bad of [
    '',
    '0x',
    '5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe',
    '0xg'.padEnd(42, '0'),
  ]) {
    assert.throws(() => parseEvmAddress(bad), { code: 'INVALID_ADDRESS' });
  }
});
