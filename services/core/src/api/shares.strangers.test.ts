import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { LIMITS } from '@skerry/protocol';
import { sql } from 'kysely';
import { encodeFrames } from '../peers/sync/frames.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { limitsExcept } from '../testing/strangers.ts';

const T0 = 1_700_000_000;
const OWN = '127.0.0.9';
const MIB = 1024 * 1024;

describe('one client beside others', () => {
  let core: TestCore;
  let url: string;
  let sent = 0;
  before(async () => {
    core = await createTestCore({ settings: { limits: limitsExcept(OWN) } });
    url = `${await core.listen()}/api/v0`;
  });
  after(() => core[Symbol.asyncDispose]());

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
  /** Whatever wants messages waits until it is given back. */
  async function hold(): Promise<() => Promise<void>> {
    const [isHeld, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const done = core.rooms.db.transaction().execute(async (trx) => {
      await sql`lock table messages in access exclusive mode`.execute(trx);
      isHeld.resolve();
      await isOver.promise;
    });
    await isHeld.promise;
    return () => {
      isOver.resolve();
      return done;
    };
  }
  const countWaiting = async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from pg_locks where not granted and relation = 'messages'::regclass`.execute(
      core.rooms.db,
    );
    return rows[0]!.count;
  };
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
    const own = [send('127.0.0.2', '/sync/messages'), send('127.0.0.2', '/sync/messages')];
    await until('both wait', countWaiting, (count) => count === 2);
    assert.equal(await send('127.0.0.2', '/sync/messages'), '429 RATE_LIMITED');
    const other = send('127.0.0.3', '/sync/messages');
    await release();
    assert.deepEqual(await Promise.all([...own, other]), ['200', '200', '200']);
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
});
