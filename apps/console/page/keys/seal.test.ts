import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { passphraseFault } from '../pure/owner/passphrase.ts';
import { openKey, type Secret, sealKey } from './seal.ts';

const ADDRESS = `0x${'ab'.repeat(20)}`;
const KEY = crypto.getRandomValues(new Uint8Array(32));
const passphrase = (text: string): Secret => ({
  guard: 'passphrase',
  bytes: new TextEncoder().encode(text),
});
const passkey = (byte: number): Secret => ({ guard: 'passkey', bytes: new Uint8Array(32).fill(byte) });

describe('a key that is kept in the browser', () => {
  for (const [right, wrong] of [
    [passphrase('correct horse'), passphrase('correct hors')],
    [passkey(1), passkey(2)],
  ] as const)
    test(`${right.guard}: it opens with its secret alone, for its address alone`, async () => {
      const sealed = await sealKey(ADDRESS, KEY, right);
      assert.deepEqual(await openKey(sealed, right), KEY);
      assert.equal(await openKey(sealed, wrong), undefined);
      assert.equal(await openKey({ ...sealed, address: `0x${'cd'.repeat(20)}` }, right), undefined);
      const changed = sealed.sealed.replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
      assert.equal(await openKey({ ...sealed, sealed: changed }, right), undefined);
    });

  test('nothing of it can be read as it is kept, and two seals of it are not equal', async () => {
    const [one, other] = await Promise.all([1, 1].map((byte) => sealKey(ADDRESS, KEY, passkey(byte))));
    assert.notEqual(one!.sealed, other!.sealed);
    assert.ok(!JSON.stringify(one).includes(Buffer.from(KEY).toString('hex')));
  });

  test('a passphrase has ten characters at least', () => {
    assert.match(passphraseFault('short')!, /10/);
    assert.equal(passphraseFault('long enough'), undefined);
  });
});
