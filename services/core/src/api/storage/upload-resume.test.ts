import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { CoreClient, PARTS_FROM_BYTES, storeInParts } from '@skerry/client';
import { AppError } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const FILE_BYTES = 4 * PARTS_FROM_BYTES;
const CUT_AFTER_BYTES = 2 * PARTS_FROM_BYTES;

interface Part {
  readonly offset: number;
  readonly bytes: number;
}

/** What a part says of itself: where it begins, and how much it brings. */
function partOf(head: string): Part | undefined {
  const [, offset] = /^PUT [^\r]*[?&]offset=([0-9]+)/m.exec(head) ?? [];
  const [, bytes] = /^content-length: ([0-9]+)\r/im.exec(head) ?? [];
  return offset === undefined ? undefined : { offset: Number(offset), bytes: Number(bytes) };
}

/**
 * Stands before a core node, and cuts the first connection that carries so much.
 * @param staysLost then lets nobody through until `heal`
 */
async function startCutter(target: string, staysLost: boolean) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const parts: Part[] = [];
  let [isCut, isLost] = [false, false];
  const server = createServer((client) => {
    sockets.add(client.on('error', () => {}));
    if (isLost) return void client.destroy();
    const node = connect(Number(port), hostname);
    sockets.add(node.on('error', () => {}));
    // What was passed on arrives; what comes after does not.
    client.once('close', () => node.end());
    node.pipe(client);
    let sent = 0;
    client.on('data', (chunk: Buffer) => {
      sent += chunk.length;
      const part = partOf(chunk.toString('latin1'));
      if (part) parts.push(part);
      if (isCut || sent < CUT_AFTER_BYTES) return void node.write(chunk);
      [isCut, isLost] = [true, staysLost];
      client.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heal: () => {
      isLost = false;
    },
    parts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** About two CPU seconds, most of them the start of a core node. */
describe('a large file that breaks off', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore({ uploadLimitBytes: FILE_BYTES });
    url = await core.listen();
  });
  after(() => core[Symbol.asyncDispose]());

  const newFile = () => {
    const bytes = randomBytes(FILE_BYTES);
    return {
      bytes,
      file: new Blob([bytes], { type: 'image/png' }),
      hash: createHash('sha256').update(bytes).digest('hex'),
    };
  };
  const assertKept = async (bytes: Buffer, hash: string, itemHash: string | undefined) => {
    const kept = await fetch(`${url}/api/v0/storage/raw/${hash}`);
    assert.equal(Buffer.compare(Buffer.from(await kept.arrayBuffer()), bytes), 0);
    const { body: message } = await core.get(`/messages/${itemHash}`);
    assert.deepEqual(
      [message.type, message.sender, message.content.content_type, message.content.tags],
      ['STORE', signers.alice.address, 'image/png', ['site', 'v2']],
    );
  };
  const tags = ['site', 'v2'];
  /** A node may still read what broke off, and be sent a part in vain: each brings only what was not there. */
  const assertRest = (parts: readonly Part[]) => {
    const told = JSON.stringify(parts);
    assert.ok(
      parts.every(({ offset, bytes }) => offset + bytes === FILE_BYTES),
      told,
    );
    assert.ok(parts.length > 1 && parts.at(-1)!.offset > PARTS_FROM_BYTES / 2, told);
  };

  test('goes on by itself where the node is', async () => {
    const { bytes, file, hash } = newFile();
    await using cutter = await startCutter(url, false);
    const client = new CoreClient({ url: cutter.url, signer: signers.alice });
    const starts: number[] = [];
    const onPart = (received: number) => starts.push(received);
    const itemHash = await storeInParts(client, file, hash, { tags, onPart });
    assertRest(cutter.parts);
    assert.equal(starts.at(-1), cutter.parts.at(-1)!.offset);
    await assertKept(bytes, hash, itemHash);
  });

  test('goes on later where the node was lost meanwhile; what is there already is not sent', async () => {
    const { bytes, file, hash } = newFile();
    await using cutter = await startCutter(url, true);
    const store = () => {
      const client = new CoreClient({ url: cutter.url, signer: signers.alice });
      return storeInParts(client, file, hash, { tags });
    };
    await assert.rejects(store(), {
      code: 'UPSTREAM_UNAVAILABLE',
      message: /send the same file again: it goes on where the node is$/,
    });
    assert.equal(cutter.parts.length, 1);
    cutter.heal();
    const itemHash = await store();
    assertRest(cutter.parts);
    await assertKept(bytes, hash, itemHash);
    const { length } = cutter.parts;
    assert.equal(await store(), itemHash);
    assert.equal(cutter.parts.length, length);
  });

  test('says how much a node has that takes no more, and how often it was asked', async () => {
    const { file, hash } = newFile();
    const client = new CoreClient({ url, signer: signers.alice });
    const has = async (received: number) => ({
      ...{ file_hash: hash, size: FILE_BYTES },
      ...{ received, item_hash: null },
    });
    const failure = (message: RegExp) => ({ code: 'UPSTREAM_UNAVAILABLE', message });
    await assert.rejects(
      storeInParts(client, file, hash, { send: () => has(0) }),
      failure(/ has 0 of 4194304 bytes after 1 try; /),
    );
    await assert.rejects(
      storeInParts(client, file, hash, { send: (_url, _rest, offset) => has(Math.min(offset + 1, 2)) }),
      failure(/ has 2 of 4194304 bytes after 3 tries; /),
    );
    const lost = () => Promise.reject(new AppError('UPSTREAM_UNAVAILABLE', 'it broke'));
    await assert.rejects(
      storeInParts(client, file, hash, { send: lost }),
      failure(/ has 0 of 4194304 bytes after 10 tries; /),
    );
  });
});
