import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { encode } from '@ipld/dag-pb';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import { CID } from 'multiformats/cid';
import { create } from 'multiformats/hashes/digest';
import { type CidSource, openCidFile } from './cid-file.ts';

/** Files of IPFS from a core node that may lie. */

const RAW = 0x55;
const DAG_PB = 0x70;

interface Part {
  readonly cid: CID;
  readonly bytes: Buffer;
}

/** What a core node has: blocks, and whole files. */
class Store implements CidSource {
  readonly blocks = new Map<string, Uint8Array>();
  readonly files = new Map<string, Uint8Array>();
  readonly asked: string[] = [];

  put(code: number, block: Uint8Array, bytes: Buffer): Part {
    const digest = create(0x12, new Uint8Array(createHash('sha256').update(block).digest()));
    const cid = code === DAG_PB ? CID.createV0(digest) : CID.createV1(code, digest);
    this.blocks.set(`${cid}`, block);
    this.files.set(`${cid}`, bytes);
    return { cid, bytes };
  }

  leaf = (text: string, type: 'file' | 'raw' = 'file') => {
    const data = Buffer.from(text);
    return this.put(DAG_PB, encode({ Data: new UnixFS({ type, data }).marshal(), Links: [] }), data);
  };
  raw = (text: string) => this.put(RAW, Buffer.from(text), Buffer.from(text));
  /** With a mode, which software writes seldom. */
  odd = (text: string) => {
    const data = Buffer.from(text);
    const Data = new UnixFS({ type: 'file', data, mode: 0o600 }).marshal();
    return this.put(DAG_PB, encode({ Data, Links: [] }), data);
  };
  node = (parts: readonly Part[], own = '') => {
    const blockSizes = parts.map(({ bytes }) => BigInt(bytes.length));
    const data = own === '' ? undefined : Buffer.from(own);
    const Data = new UnixFS({ type: 'file', blockSizes, ...(data && { data }) }).marshal();
    const Links = parts.map(({ cid, bytes }) => ({ Name: '', Tsize: bytes.length, Hash: cid }));
    const bytes = Buffer.concat([...(data ? [data] : []), ...parts.map((part) => part.bytes)]);
    return this.put(DAG_PB, encode({ Data, Links }), bytes);
  };

  async getIpfsBlock(cid: string): Promise<Response> {
    this.asked.push(cid);
    return new Response(this.blocks.get(cid) as BodyInit);
  }
  async getFile(cid: string): Promise<Response> {
    return new Response(this.files.get(cid) as BodyInit);
  }

  async read({ cid }: Part): Promise<string> {
    const { sizeBytes, bytes } = await openCidFile(this, `${cid}`);
    const whole = await buffer(bytes);
    assert.equal(whole.length, sizeBytes);
    return whole.toString();
  }
}

const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

describe('a file by its CID', () => {
  test('is read whatever it is made of; leaves are not asked for one by one', async () => {
    const store = new Store();
    const { leaf, raw, odd, node } = store;
    const inner = node([raw('c'), leaf('dd', 'raw')]);
    const cases: readonly [Part, string, number][] = [
      [leaf('a'), 'a', 1],
      [leaf(''), '', 1],
      [raw('abc'), 'abc', 1],
      [node([leaf('a'), leaf('b'), leaf('c')]), 'abc', 1],
      [node([node([leaf('a'), leaf('bb')]), inner]), 'abbcdd', 3],
      [node([odd('x'), leaf('y')], 'own'), 'ownxy', 2],
      [node([leaf('same'), leaf('same')]), 'samesame', 1],
    ];
    for (const [part, text, blocks] of cases) {
      store.asked.length = 0;
      assert.deepEqual([await store.read(part), store.asked.length], [text, blocks]);
    }
  });

  test('is refused where a block, the bytes, or their end is another one', async () => {
    const store = new Store();
    const { leaf, node } = store;
    const inner = node([leaf('a'), leaf('b')]);
    const root = node([inner, leaf('c')]);
    const broken = { files: ['abd', 'abcd', 'ab', 'xbc', ''], code: 'FILE_CORRUPT' };
    for (const bytes of broken.files) {
      store.files.set(`${root.cid}`, Buffer.from(bytes));
      await assert.rejects(store.read(root), isError(broken.code), bytes);
    }
    store.files.set(`${root.cid}`, root.bytes);
    assert.equal(await store.read(root), 'abc');
    for (const { cid } of [root, inner]) {
      const own = store.blocks.get(`${cid}`)!;
      store.blocks.set(`${cid}`, store.blocks.get(`${leaf('z').cid}`)!);
      await assert.rejects(store.read(root), isError('FILE_CORRUPT'));
      store.blocks.set(`${cid}`, own);
    }
  });

  test('is refused where its parts are too small, though a few blocks are all that it is made of', async () => {
    const store = new Store();
    const many = (part: Part, count: number) => Array.from({ length: count }, () => part);
    const inner = store.node(many(store.raw('x'), 3_000));
    assert.equal((await store.read(inner)).length, 3_000);
    await assert.rejects(store.read(store.node(many(inner, 3))), isError('NOT_UNIXFS'));
  });

  test('of what has no bytes nothing is asked for, however much of it there is', async () => {
    const store = new Store();
    const { raw, node } = store;
    const many = (part: Part) => Array.from({ length: 100 }, () => part);
    const root = node([...many(node(many(node(many(raw('')))))), raw('x')]);
    assert.equal(await store.read(root), 'x');
    assert.deepEqual(store.asked, [`${root.cid}`]);
  });

  test('is refused where it is no file, or says sizes that are none', async () => {
    const store = new Store();
    const put = (file: UnixFS, Links: Part[] = []) =>
      store.put(
        DAG_PB,
        encode({ Data: file.marshal(), Links: Links.map(({ cid }) => ({ Name: '', Tsize: 1, Hash: cid })) }),
        Buffer.from('a'),
      );
    const parts = [
      put(new UnixFS({ type: 'directory' })),
      put(new UnixFS({ type: 'file', blockSizes: [1n] })),
      put(new UnixFS({ type: 'file', blockSizes: [2n ** 63n] }), [store.leaf('a')]),
      store.put(DAG_PB, Buffer.from('no block'), Buffer.from('')),
    ];
    for (const part of parts) await assert.rejects(store.read(part), isError('NOT_UNIXFS'));
    // It has the form of a CID, and no multihash inside.
    const formless = `Qm${'1'.repeat(44)}`;
    await assert.rejects(openCidFile(store, formless), isError('NOT_UNIXFS'));
    const liar = put(new UnixFS({ type: 'file', blockSizes: [3n, 1n] }), [
      store.node([store.leaf('a'), store.leaf('b')]),
      store.leaf('c'),
    ]);
    store.files.set(`${liar.cid}`, Buffer.from('abc'));
    await assert.rejects(store.read(liar), isError('NOT_UNIXFS'));
    let deep = store.leaf('a');
    for (let depth = 0; depth < 40; depth++) deep = store.node([deep]);
    await assert.rejects(store.read(deep), isError('NOT_UNIXFS'));
  });

  test('whose blocks or bytes break off is not there for now, whatever it is', async () => {
    const broken = async () =>
      new Response(
        new ReadableStream({ pull: (controller) => controller.error(new TypeError('terminated')) }),
      );
    const [blocks, bytes] = [new Store(), new Store()];
    blocks.getIpfsBlock = broken;
    bytes.getFile = broken;
    for (const store of [blocks, bytes]) {
      const file = store.node([store.leaf('a'), store.leaf('b')]);
      await assert.rejects(store.read(file), isError('UPSTREAM_UNAVAILABLE'));
    }
  });
});
