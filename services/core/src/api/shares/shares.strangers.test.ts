import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { LIMITS } from '@skerry/protocol';
import { CID } from 'multiformats/cid';
import { create as digestOf } from 'multiformats/hashes/digest';
import { Client } from 'pg';
import { encodeFrames } from '../../peers/sync/frames.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { TestSocket } from '../../testing/sockets.ts';
import { limitsExcept } from '../../testing/strangers.ts';

const T0 = 1_700_000_000;
const OWN = '127.0.0.9';
const MIB = 1024 * 1024;

describe('one client beside others', () => {
  let core: TestCore;
  let url: string;
  let beside: Client;
  let sent = 0;
  /** Blocks of IPFS that others have, which they were asked for, and when they answer. */
  const blocks = new Map<string, Buffer>();
  const asked = new Set<string>();
  const answers = Promise.withResolvers<void>();
  const logged: string[] = [];
  before(async () => {
    core = await createTestCore({
      settings: { limits: limitsExcept(OWN) },
      // Beside those who are to wait there is what the node does by itself.
      connectionsMax: 16,
      log: createLogger('core', 'error', { write: (line: string) => void logged.push(line) }),
      blockSource: {
        async fetch({ text }, signal) {
          asked.add(text);
          await Promise.race([answers.promise, once(signal, 'abort')]);
          signal.throwIfAborted();
          return blocks.get(text)!;
        },
      },
    });
    url = `${await core.listen()}/api/v0`;
    beside = new Client({ connectionString: core.rooms.indexer.pool.options.connectionString });
    await beside.connect();
  });
  after(async () => {
    await beside.end();
    await core[Symbol.asyncDispose]();
  });

  const note = () => {
    const draft = { type: 'POST', content: { type: 'note', content: 1 }, timestamp: T0, nonce: `${sent++}` };
    return Buffer.from(signMessage(draft, signers.alice).body);
  };
  const open = (localAddress: string, path: string, method: string, headers = {}) =>
    request(url + path, { method, localAddress, agent: false, headers }).on('error', () => {});
  async function answerTo(asked: ClientRequest): Promise<string> {
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const { statusCode: status } = response;
    return status! < 400 ? `${status}` : `${status} ${JSON.parse(Buffer.concat(chunks).toString()).code}`;
  }
  function send(localAddress: string, path: string, body?: Buffer, type = 'application/json') {
    const headers = body ? { 'content-type': type, 'content-length': body.length } : {};
    const asked = open(localAddress, path, body ? 'POST' : 'GET', headers);
    asked.end(body);
    return answerTo(asked);
  }
  /** Whatever wants messages waits until it is given back. Whoever holds them waits for no connection of the node. */
  async function hold(): Promise<() => Promise<void>> {
    await beside.query('begin; lock table messages in access exclusive mode');
    return async () => void (await beside.query('commit'));
  }
  /** Pages of messages that wait for it, beside what the node does by itself. */
  async function countWaiting(): Promise<number> {
    // Within one transaction it would show what it has shown before.
    const { rows } = await core.rooms.indexer.pool.query(`
      select from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and l.relation = 'messages'::regclass and a.query not like '%wanted_files%'`);
    return rows.length;
  }
  beforeEach(async () => assert.equal(await send('127.0.0.2', '/messages', note()), '200'));

  test('who sends many large bodies at once, and slowly, leaves room for those of others', async () => {
    const held: ClientRequest[] = [];
    for (let n = 0; n < 8; n++) {
      const arrived = once(core.api.server, 'request');
      const asked = open('127.0.0.2', '/messages', 'POST', {
        'content-type': 'application/json',
        'content-length': MIB,
      });
      asked.write('{');
      await arrived;
      held.push(asked);
    }
    const large = Buffer.concat([note(), Buffer.alloc(MIB / 2, ' ')]);
    assert.equal(await send('127.0.0.2', '/messages', large), '429 RATE_LIMITED');
    assert.equal(await send('127.0.0.3', '/messages', large), '200');
    for (const one of held) one.destroy();
  });

  test('who asks for pages of messages again and again leaves some for others', async () => {
    const release = await hold();
    const order: string[] = [];
    const ask = async (from: string) => {
      const answer = await send(from, '/sync/messages');
      order.push(from);
      return answer;
    };
    const own = Array.from({ length: 6 }, () => ask('127.0.0.2'));
    assert.equal(await Promise.race(own), '429 RATE_LIMITED');
    await until('one is read', countWaiting, (count) => count === 1);
    const other = ask('127.0.0.3');
    await until('that of another is read, too', countWaiting, (count) => count === 2);
    await release();
    assert.equal(await other, '200');
    assert.deepEqual((await Promise.all(own)).sort(), [...Array(5).fill('200'), '429 RATE_LIMITED']);
    assert.ok(order.indexOf('127.0.0.3') <= 4, `${order}`);
  });

  test('who offers messages leaves a place for another offer', async () => {
    const release = await hold();
    const offer = (from: string) =>
      send(from, '/sync/offers', encodeFrames([note().toString()]), 'application/octet-stream');
    const own = offer('127.0.0.2');
    await until(
      'it is written',
      () => core.rooms.pipeline.writingMs,
      (ms) => ms > 0,
    );
    assert.equal(await offer('127.0.0.2'), '429 RATE_LIMITED');
    const other = offer('127.0.0.3');
    assert.equal(await offer('127.0.0.2'), '429 RATE_LIMITED');
    await release();
    assert.deepEqual(await Promise.all([own, other]), ['200', '200']);
  });

  test('who asks for histories again and again waits for itself: others have theirs in between', async () => {
    const release = await hold();
    const socketUrl = `${new URL(url).origin}/api/ws0/messages?history=9&contentFormat=none`;
    const order: string[] = [];
    async function follow(localAddress: string): Promise<TestSocket> {
      const socket = await TestSocket.open(socketUrl, { localAddress });
      order.push(localAddress);
      return socket;
    }
    let arrived = 0;
    core.api.server.on('request', () => arrived++);
    const own = Array.from({ length: 12 }, () => follow('127.0.0.2'));
    const leaving = request(socketUrl, {
      ...{ localAddress: '127.0.0.2', agent: false },
      headers: {
        ...{ connection: 'Upgrade', upgrade: 'websocket' },
        ...{ 'sec-websocket-version': '13', 'sec-websocket-key': `${'x'.repeat(22)}==` },
      },
    });
    leaving.on('error', () => {}).end();
    await until('they ask', () => arrived === 13);
    leaving.destroy();
    const other = follow('127.0.0.3');
    await until('another asks', () => arrived === 14);
    await release();
    for (const socket of await Promise.all([...own, other])) {
      await socket.until(({ length }) => length > 0);
      socket.close();
    }
    assert.ok(order.indexOf('127.0.0.3') < 7, `${order}`);
  });

  test('who names contents that are files has room for some of them at once', async () => {
    const { address } = signers.alice;
    const name = async (n: number) => {
      const text = 'x'.repeat(LIMITS.contentFileBytes - 1_000);
      const content = JSON.stringify({ address, time: T0 + n, type: 'note', content: text });
      const hash = createHash('sha256').update(content).digest('hex');
      assert.equal(await send(OWN, '/storage/add_json', Buffer.from(content)), '200');
      const signed = signers.alice.sign(['ETH', address, 'POST', hash].join('\n'));
      const message = { chain: 'ETH', sender: address, type: 'POST', time: T0 + n, item_type: 'storage' };
      return Buffer.from(JSON.stringify({ message: { ...message, item_hash: hash, signature: signed } }));
    };
    const bodies = [await name(1), await name(2), await name(3)];
    const release = await hold();
    const own = bodies.slice(0, 2).map((body) => send('127.0.0.2', '/messages', body));
    await until(
      'both wait',
      () => core.rooms.pipeline.queued,
      (count) => count >= 1,
    );
    assert.equal(await send('127.0.0.2', '/messages', bodies[2]), '429 RATE_LIMITED');
    const other = send('127.0.0.3', '/messages', bodies[2]);
    await until(
      'the other waits, too',
      () => core.rooms.pipeline.queued,
      (count) => count >= 2,
    );
    await release();
    assert.deepEqual(await Promise.all([...own, other]), ['200', '200', '200']);
  });

  test('who reads many files at once, and slowly, waits for itself: others read on', async () => {
    const cids = Array.from({ length: 12 }, (_, n) => {
      const bytes = Buffer.from(`file ${n}`);
      const cid = CID.create(1, 0x55, digestOf(0x12, createHash('sha256').update(bytes).digest())).toString();
      blocks.set(cid, bytes);
      return cid;
    });
    const [left, others] = cids.splice(10);
    const leaving = open('127.0.0.2', `/storage/raw/${left}`, 'GET');
    leaving.end();
    await until('it is asked for', () => asked.has(left!));
    leaving.destroy();
    const own = cids.map((cid) => send('127.0.0.2', `/storage/raw/${cid}`));
    const countAsked = () => cids.filter((cid) => asked.has(cid)).length;
    await until('eight are read', countAsked, (count) => count >= 8);
    const other = send('127.0.0.3', `/ipfs/${others}`);
    await until('that of another is read, too', () => asked.has(others!));
    assert.equal(countAsked(), 8);
    answers.resolve();
    assert.deepEqual(await Promise.all([...own, other]), Array(11).fill('200'));
    for (const cid of cids) assert.equal(await send('127.0.0.2', `/storage/${cid}`), '200');
    assert.deepEqual(logged, [], 'that somebody left is no failure');
  });
});
