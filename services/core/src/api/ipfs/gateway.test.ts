import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { UnixFS } from 'ipfs-unixfs';
import { CID } from 'multiformats/cid';
import { openCar } from '../../store/ipfs/car/read.ts';
import { parseCid } from '../../store/ipfs/cid.ts';
import { Dag } from '../../store/ipfs/testing/dags.ts';
import { createTestCore, type TestCore } from '../../testing/core.ts';

const NOBODY = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
const CHUNK = 262_144;
const CAR_TYPE = 'application/vnd.ipld.car; version=1; order=dfs; dups=n';
const LARGE = randomBytes(4 * CHUNK + 10);

describe('the trustless gateway', () => {
  let core: TestCore;
  const dag = new Dag();
  let root: string;
  /** Of the directory below, and of the large file in it. */
  let below: string;
  let large: string;
  before(async () => {
    core = await createTestCore();
    root = String(await dag.directory({ 'a.txt': Buffer.from('one'), 'b/large.bin': LARGE }));
    for (const block of dag.blocks)
      await (await core.blobs.receive(Readable.from([block]), block.length)).keep();
    const { signal } = new AbortController();
    const cidAt = async (...path: string[]) =>
      (await core.rooms.ipfs.open(parseCid(root), path, signal)).hash;
    below = await cidAt('b');
    large = await cidAt('b', 'large.bin');
  });
  after(() => core[Symbol.asyncDispose]());

  const get = async (path: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') => {
    const response = await core.api.inject({ method, url: path, headers });
    return { status: response.statusCode, headers: response.headers, body: response.rawPayload };
  };
  const codeOf = async (path: string, headers: Record<string, string> = {}) => {
    const { status, body } = await get(path, headers);
    return [status, JSON.parse(body.toString()).code];
  };
  /** The blocks of a CAR: each is checked against its CID as it is read. */
  const carAt = async (path: string, headers: Record<string, string> = {}) => {
    const { status, headers: answered, body } = await get(path, headers);
    assert.equal(status, 200, body.subarray(0, 300).toString());
    const { root: first, blocks } = await openCar(Readable.from([body]));
    const read: { cid: string; bytes: Uint8Array }[] = [];
    for await (const { id, bytes } of blocks) read.push({ cid: id.text, bytes });
    return { root: first.text, cids: read.map(({ cid }) => cid), blocks: read, headers: answered };
  };

  test('a block comes by format or by Accept, as an attachment that never changes', async () => {
    for (const [path, headers] of [
      [`/ipfs/${root}?format=raw`, {}],
      [`/ipfs/${root}`, { accept: 'application/vnd.ipld.raw' }],
      [`/api/v0/ipfs/${root}?format=raw`, { accept: 'text/html' }],
    ] as const) {
      const answer = await get(path, headers);
      assert.equal(answer.status, 200);
      assert.equal(createHash('sha256').update(answer.body).digest('hex'), parseCid(root).digest);
      const { headers: head } = answer;
      assert.equal(head['content-type'], 'application/vnd.ipld.raw');
      assert.equal(head['content-disposition'], `attachment; filename="${root}.bin"`);
      assert.equal(head['x-content-type-options'], 'nosniff');
      assert.equal(head['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(head['x-ipfs-path'], `/ipfs/${root}`);
      assert.equal(head.vary, 'accept');
      assert.equal(head.etag, `"${root}.raw"`);
      const again = await get(path, { ...headers, 'if-none-match': `W/"x", ${head.etag}` });
      assert.deepEqual([again.status, again.body.length], [304, 0]);
      const only = await get(path, headers, 'HEAD');
      assert.deepEqual(
        [only.status, only.headers['content-length'], only.body.length],
        [200, head['content-length'], 0],
      );
    }
    const named = await get(`/ipfs/${root}?format=raw&filename=${encodeURIComponent('é"a\r\n.bin')}`);
    assert.equal(named.headers['content-disposition'], "attachment; filename*=UTF-8''%C3%A9%22a%0D%0A.bin");
  });

  test('a CAR has all below a CID, depth first, each block once; a path puts its own blocks before', async () => {
    const all = await carAt(`/ipfs/${root}?format=car`);
    assert.equal(all.headers['content-type'], CAR_TYPE);
    assert.equal(all.headers['content-disposition'], `attachment; filename="${root}.car"`);
    assert.equal(all.root, root);
    assert.equal(all.cids[0], root);
    assert.deepEqual([...all.cids].sort(), dag.cids.map(String).sort());
    assert.ok(all.cids.indexOf(below) < all.cids.indexOf(large));
    const block = await carAt(`/ipfs/${root}/b/large.bin?format=car&dag-scope=block`);
    assert.deepEqual([block.root, ...block.cids], [large, root, below, large]);
    const entity = await carAt(`/ipfs/${root}/b/large.bin?format=car&dag-scope=entity`);
    assert.deepEqual(entity.cids.slice(0, 3), [root, below, large]);
    assert.equal(entity.cids.length, 3 + 5);
    const directory = await carAt(`/ipfs/${root}?dag-scope=entity`, { accept: 'application/vnd.ipld.car' });
    assert.deepEqual(directory.cids, [root]);
    assert.equal(directory.headers['content-location'], `/ipfs/${root}?format=car`);
    const etags = [all, block, entity, directory].map(({ headers }) => headers.etag);
    assert.equal(new Set(etags).size, 4);
    for (const etag of etags) assert.match(String(etag), /^W\/"\w+\.car\.[0-9a-f]{16}"$/);
    const again = await get(`/ipfs/${root}?format=car`, { 'if-none-match': String(all.headers.etag) });
    assert.equal(again.status, 304);
    const head = await get(`/ipfs/${root}?format=car`, {}, 'HEAD');
    assert.deepEqual([head.status, head.headers['content-type'], head.body.length], [200, CAR_TYPE, 0]);
  });

  test('a part of a file comes with the blocks that hold it, and no other', async () => {
    const whole = (await carAt(`/ipfs/${large}?format=car`)).cids;
    const cases: [string, number[]][] = [
      ['0:*', [0, 1, 2, 3, 4, 5]],
      ['0:0', [0, 1]],
      [`${CHUNK - 1}:${CHUNK}`, [0, 1, 2]],
      [`${CHUNK}:${2 * CHUNK - 1}`, [0, 2]],
      ['-1:*', [0, 5]],
      ['-11:-10', [0, 4, 5]],
      [`${CHUNK}:-${3 * CHUNK}`, [0, 2]],
      ['999999999:*', [0]],
    ];
    for (const [bytes, indexes] of cases) {
      const { cids } = await carAt(`/ipfs/${large}?format=car&entity-bytes=${bytes}`);
      assert.deepEqual(
        cids,
        indexes.map((index) => whole[index]),
        bytes,
      );
    }
    // A directory has no bytes.
    assert.deepEqual((await carAt(`/ipfs/${root}?format=car&entity-bytes=5:9`)).cids, [root]);
  });

  test('what is not kept here, malformed, or of no form that is made, has its status', async () => {
    assert.deepEqual(await codeOf(`/ipfs/${NOBODY}?format=car`), [404, 'CID_NOT_FOUND']);
    assert.deepEqual(await codeOf(`/ipfs/${NOBODY}?format=raw`), [404, 'CID_NOT_FOUND']);
    assert.deepEqual(await codeOf(`/ipfs/${root}/none?format=car`), [404, 'FILE_NOT_FOUND']);
    assert.deepEqual(await codeOf(`/ipfs/${root}/b?format=raw`), [400, 'INVALID_PARAMETERS']);
    assert.deepEqual(await codeOf('/ipfs/abc?format=raw'), [400, 'INVALID_HASH']);
    assert.deepEqual(await codeOf(`/ipfs/${root}?format=tar`), [400, 'INVALID_PARAMETERS']);
    assert.deepEqual(await codeOf(`/ipfs/${root}?format=car&entity-bytes=x`), [400, 'INVALID_PARAMETERS']);
    assert.deepEqual(await codeOf(`/ipfs/${root}?format=car&car-dups=y`), [400, 'INVALID_PARAMETERS']);
    assert.deepEqual(await codeOf(`/ipfs/${root}?colour=red`), [400, 'UNKNOWN_FIELD']);
    const accept = 'application/vnd.ipfs.ipns-record';
    assert.deepEqual(await codeOf(`/ipfs/${root}`, { accept }), [406, 'NOT_ACCEPTABLE']);
    for (const query of ['', '?format=car', '?format=raw'])
      assert.deepEqual(await codeOf(`/ipfs/${NOBODY}${query}`, { 'cache-control': 'only-if-cached' }), [
        412,
        'PRECONDITION_FAILED',
      ]);
    assert.equal((await get(`/ipfs/${root}/a.txt`)).body.toString(), 'one');
  });

  test('by the CID that holds nothing, clients find out that this is a gateway', async () => {
    const raw = await get('/ipfs/bafkqaaa?format=raw');
    assert.deepEqual([raw.status, raw.body.length], [200, 0]);
    const car = await get('/ipfs/bafkqaaa', { accept: 'application/vnd.ipld.car' });
    assert.deepEqual([car.status, car.headers['content-type']], [200, CAR_TYPE]);
    assert.ok(car.body.includes(CID.parse('bafkqaaa').bytes));
    assert.equal((await get('/ipfs/bafkqaaa?format=raw', {}, 'HEAD')).status, 200);
  });

  test('a CAR whose blocks are not all here breaks off, and is not taken for a whole one', async () => {
    const half = new Dag();
    const missing = new Dag().node(new UnixFS({ type: 'file', data: randomBytes(8) }));
    const top = half.node(new UnixFS({ type: 'directory' }), [{ name: 'a', cid: missing, size: 1 }]);
    for (const block of half.blocks)
      await (await core.blobs.receive(Readable.from([block]), block.length)).keep();
    const base = await core.listen();
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    request(
      `${base}/ipfs/${top}?format=car`,
      (response) => void buffer(response).then(resolve, reject),
    ).end();
    await assert.rejects(promise, { code: 'ECONNRESET' });
    const block = await carAt(`/ipfs/${top}?format=car&dag-scope=block`);
    assert.deepEqual(block.cids, [String(top)]);
  });
});
