import assert from 'node:assert/strict';
import { createCipheriv, createHash } from 'node:crypto';
import { test } from 'node:test';
import { cidOfFile } from '@skerry/protocol';
import fc from 'fast-check';
import { importer, importFile } from 'ipfs-unixfs-importer';
import type { CID } from 'multiformats/cid';
import { isCidText, parseCid } from './cid.ts';
import { PROFILES } from './embedded.ts';

/** Vectors of kubo's own test of its profiles (test/cli/cid_profiles_test.go, profile unixfs-v0-2015, its default). */
const FILES: readonly (readonly [number, string, string])[] = [
  [262_144, 'chunk-v0-seed', 'QmWmRj3dFDZdb6ABvbmKhEL6TmPbAfBZ1t5BxsEyJrcZhE'],
  [262_145, 'chunk-v0-seed', 'QmYyLxtzZyW22zpoVAtKANLRHpDjZtNeDjQdJrcQNWoRkJ'],
  [174 * 262_144, 'v0-seed', 'QmUbBALi174SnogsUzLpYbD4xPiBSFANF4iztWCsHbMKh2'],
  [174 * 262_144 + 1, 'v0-seed', 'QmV81WL765sC8DXsRhE5fJv2rwhS4icHRaf3J9Zk5FdRnW'],
];
const DIRECTORY_SEED = 'hamt-unixfs-v0-2015';
const DIRECTORIES: readonly (readonly [number, number, string])[] = [
  [4096, 30, 'QmX5GtRk3TSSEHtdrykgqm4eqMEn3n2XhfkFAis5fjyZmN'],
  [4033, 31, 'QmeMiJzmhpJAUgynAcxTQYek5PPKgdv3qEvFsdV3XpVnvP'],
];
const NAME_CHARS = 'abcdefghijklmnopqrstuvwxyz01234567890-_';

const nowhere = { put: (cid: CID) => cid };
const cidOf = async (content: Uint8Array, version: 0 | 1 = 0) =>
  (await importFile({ content }, nowhere, PROFILES[version])).cid.toString();

/** The stream that kubo's tests draw from: ChaCha20 under the SHA-256 of the seed. */
const draw = (sizeBytes: number, seed: string) =>
  createCipheriv('chacha20', createHash('sha256').update(seed).digest(), Buffer.alloc(16)).update(
    Buffer.alloc(sizeBytes),
  );

test('files have the CIDs that kubo gives them, at and beyond each border', async () => {
  assert.equal(await cidOf(Buffer.alloc(0)), 'QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH');
  assert.equal(await cidOf(Buffer.from('hello world')), 'Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD');
  assert.equal(
    await cidOf(Buffer.from('hello world'), 1),
    'bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
  );
  for (const [size, seed, cid] of FILES) {
    const bytes = draw(size, seed);
    assert.equal(await cidOf(bytes), cid, `${size} bytes`);
    assert.equal(cidOfFile(bytes), cid, `${size} bytes, as a reader computes it`);
  }
  assert.equal(cidOfFile(Buffer.from('hello world')), 'Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD');
  assert.equal(cidOfFile(new Uint8Array()), undefined);
});

test('directories too, also where they are so large that kubo shards them', async () => {
  for (const [files, nameChars, cid] of DIRECTORIES) {
    const names = draw(files * nameChars, DIRECTORY_SEED);
    const source = Array.from({ length: files }, (_, n) => {
      const bytes = [...names.subarray(n * nameChars, (n + 1) * nameChars)];
      return {
        path: `d/${bytes.map((byte) => NAME_CHARS[byte % NAME_CHARS.length]).join('')}`,
        content: Buffer.from('x'),
      };
    });
    let root = '';
    for await (const made of importer(source, nowhere, { profile: 'unixfs-v0-2015' }))
      root = made.cid.toString();
    assert.equal(root, cid, `${files} files`);
  }
});

test('a CID has one spelling; whatever else is refused', () => {
  const good = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
  assert.equal(parseCid(good).text, good);
  const bad = [
    '',
    good.toLowerCase(),
    `${good}1`,
    good.slice(0, -1),
    // Another base, another hash, another codec, bits that are left over.
    'zb2rhe5P4gXftAwvA4eXQ5HJwsER2owDyS9sKaQRRVQPn93bA',
    'bafkrgqfzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
    'bafyreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
    'bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5f',
  ];
  for (const text of bad) assert.throws(() => parseCid(text), { code: 'INVALID_HASH' }, text);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.base64String().map((tail) => `Qm${tail}`),
      ),
      (text) => {
        try {
          assert.equal(parseCid(text).text, text);
          assert.ok(isCidText(text));
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'INVALID_HASH');
        }
      },
    ),
  );
});
