import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { encode } from '@ipld/dag-cbor';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { CID } from 'multiformats/cid';
import { create } from 'multiformats/hashes/digest';
import { IPFS_LIMITS } from '../limits.ts';
import { Dag } from '../testing/dags.ts';
import { openCar } from './read.ts';

async function readAll(pieces: Iterable<Uint8Array>) {
  const { root, blocks } = await openCar(Readable.from(pieces));
  const read: string[] = [];
  for await (const { id } of blocks) read.push(id.text);
  return { root: root.text, blocks: read };
}

const codeOf = (pieces: Iterable<Uint8Array>) =>
  readAll(pieces).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof AppError) return error.code;
      throw error;
    },
  );

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value & 0x7f) | 0x80, ...varint(Math.floor(value / 128))];
const sectionOf = (bytes: Uint8Array) => Buffer.concat([Buffer.from(varint(bytes.length)), bytes]);

const dag = new Dag();
const root = await dag.directory({ a: randomBytes(9_000), b: Buffer.from('b') });
const car = await dag.car(root);

test('a CAR is read the same in whatever pieces it comes', async () => {
  const whole = await readAll([car]);
  assert.equal(whole.root, root.toString());
  assert.deepEqual(whole.blocks, dag.cids.map(String));
  for (const size of [1, 7, 4_096]) {
    const pieces = Array.from({ length: Math.ceil(car.length / size) }, (_, n) =>
      car.subarray(n * size, (n + 1) * size),
    );
    assert.deepEqual(await readAll(pieces), whole, `${size}`);
  }
});

test('what is no CAR of one root, or has a block that its CID does not name, is refused', async () => {
  const header = (value: object) => sectionOf(encode(value));
  const ofRoots = (...roots: CID[]) => header({ version: 1, roots });
  const bytes = randomBytes(100);
  const raw = new Dag().put(bytes, 0x55);
  const blake = CID.create(1, 0x55, create(0xb220, randomBytes(32)));
  const large = new Dag().put(Buffer.alloc(IPFS_LIMITS.blockBytes + 1), 0x55);
  const block = (cid: CID, content: Uint8Array) => sectionOf(Buffer.concat([cid.bytes, content]));
  const refused: Record<string, Uint8Array[]> = {
    nothing: [],
    'a frame alone': [Buffer.from([0])],
    'no DAG-CBOR': [sectionOf(Buffer.from('nonsense'))],
    'version 2': [header({ version: 2 })],
    'no root': [ofRoots()],
    'two roots': [ofRoots(root, raw)],
    'a root of another hash': [ofRoots(blake)],
    'roots that are text': [header({ version: 1, roots: [root.toString()] })],
    'a header that is too long': [sectionOf(Buffer.alloc(5_000))],
    'a length of many digits': [Buffer.from('ffffffffffffffff7f', 'hex')],
    'a section of 2 GiB': [ofRoots(root), Buffer.from(varint(2 ** 31))],
    'an empty section': [ofRoots(root), Buffer.from([0])],
    'a block of other bytes': [ofRoots(root), block(raw, randomBytes(100))],
    'a block of another hash': [ofRoots(root), block(blake, bytes)],
    'a block that is too large': [ofRoots(root), block(large, Buffer.alloc(IPFS_LIMITS.blockBytes + 1))],
    'a section without a CID': [ofRoots(root), sectionOf(Buffer.from('zz'))],
    'an end within a block': [car.subarray(0, -1)],
  };
  for (const [what, pieces] of Object.entries(refused))
    assert.equal(await codeOf(pieces), 'INVALID_CAR', what);
  const identity = CID.create(1, 0x55, create(0x00, Buffer.from('x')));
  const read = await readAll([ofRoots(root), block(identity, Buffer.from('x')), block(raw, bytes)]);
  assert.deepEqual(read.blocks, [raw.toString()]);
});

test('whatever bytes strangers send, they are read or refused, and no block is believed', async () => {
  const small = new Dag();
  const smallRoot = await small.directory({ a: Buffer.from('a'), b: Buffer.from('b') });
  const good = await small.car(smallRoot);
  const known = new Set(small.cids.map(String));
  const damaged = fc
    .array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
    .map((changes) => {
      const bytes = Buffer.from(good);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
  const cut = fc.nat(good.length).map((at) => good.subarray(0, at));
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
    damaged,
    cut,
  );
  await fc.assert(
    fc.asyncProperty(bytes, async (sent) => {
      const code = await codeOf([sent]);
      if (code !== undefined) return assert.equal(code, 'INVALID_CAR');
      for (const text of (await readAll([sent])).blocks) assert.ok(known.has(text));
    }),
    { numRuns: 1_500 },
  );
});
