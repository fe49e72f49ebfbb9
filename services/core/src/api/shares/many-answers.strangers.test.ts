import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { TestSocket } from '../../testing/sockets.ts';
import { limitsExcept } from '../../testing/strangers.ts';
import { Answers } from './answers.ts';

const MIB = 1024 * 1024;
const OWN = '127.0.0.9';
const T0 = 1_700_000_000;

interface Asked {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly code: string | undefined;
  /** Reads what is left; rejects where the node ended it. */
  rest(): Promise<string>;
}

/** Asks and reads nothing but the head, or a refusal. */
async function ask(url: string, localAddress = '127.0.0.1', headers = {}): Promise<Asked> {
  const asked = request(url, { localAddress, agent: false, headers });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const rest = async () => {
    let text = '';
    for await (const chunk of response) text += chunk;
    return text;
  };
  const status = response.statusCode!;
  const code = status < 400 ? undefined : JSON.parse(await rest()).code;
  return { status, code, retryAfter: response.headers['retry-after'], rest };
}

describe('many large answers of a core node', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore({
      settings: {
        limits: limitsExcept(OWN),
      },
    });
    url = `${await core.listen()}/api/v0`;
    for (let n = 0; n < 12; n++)
      await core.send(signers.alice, {
        type: 'POST',
        content: { type: 'note', content: n },
        timestamp: T0 + n,
      });
    // As contents that came as files.
    await sql`update messages set source_text = null, content = jsonb_build_object('type', 'note', 'content',
      repeat('x', ${4 * MIB - 64}::int))`.execute(core.rooms.db);
  });
  after(() => core[Symbol.asyncDispose]());

  test('a page of few messages is weighed, too', async () => {
    for (const path of ['/messages', '/messages.json', '/posts.json', '/messages.json?sortBy=tx-time'])
      assert.equal((await ask(`${url}${path}`)).code, 'LIST_TOO_COSTLY', path);
  });

  test('what others permit an address is weighed, without what they permit anybody else', async () => {
    const permit = (address: string, owners: number, bytes: number) =>
      sql`insert into aggregate_entries (owner, key, field, value, "time", item_hash)
        select ${address} || n, 'security', 'authorizations', jsonb_build_array(
          jsonb_build_object('address', ${address}::text, 'channels', jsonb_build_array(repeat('x', ${bytes}::int))),
          jsonb_build_object('address', 'another', 'channels', jsonb_build_array(repeat('x', ${MIB}::int)))), ${T0}, ''
        from generate_series(1, ${owners}::int) n`.execute(core.rooms.db);
    await permit('few', 40, 1_000);
    await permit('many', 40, MIB);
    const few = await ask(`${url}/authorizations/received/few.json?pagination=100`);
    assert.deepEqual(
      [few.status, Object.keys(JSON.parse(await few.rest()).authorizations).length],
      [200, 40],
    );
    const many = `${url}/authorizations/received/many.json`;
    assert.equal((await ask(many)).code, 'LIST_TOO_COSTLY');
    const one = await ask(`${many}?granter=many7`);
    assert.deepEqual(
      [one.status, Object.keys(JSON.parse(await one.rest()).authorizations)],
      [200, ['many7']],
    );
  });

  test('a client that reads nothing of its answers has its share of them, and others theirs', async () => {
    const page = `${url}/messages.json?pagination=3`;
    const answers: Asked[] = [];
    for (let n = 0; n < 4; n++) answers.push(await ask(page, '127.0.0.2'));
    assert.deepEqual(
      answers.map(({ status, code, retryAfter }) => [status, code, retryAfter]),
      [
        [200, undefined, undefined],
        [200, undefined, undefined],
        [429, 'RATE_LIMITED', '2'],
        [429, 'RATE_LIMITED', '2'],
      ],
    );
    assert.equal(
      (await ask(`${url}/messages.json?pagination=1&excludeContent=true`, '127.0.0.2')).status,
      200,
    );
    for (const other of ['127.0.0.3', OWN]) await (await ask(page, other)).rest();
    for (const { status, rest } of answers) if (status === 200) await rest();
    await (await ask(page, '127.0.0.2')).rest();
  });

  test('what WebSockets begin with counts until it is read, or its reader is gone', async () => {
    const open = (localAddress: string) =>
      TestSocket.tryOpen(`${url.replace('v0', 'ws0')}/messages?history=3`, { localAddress });
    const sockets: TestSocket[] = [];
    for (let n = 0; n < 2; n++) {
      const opened = await open('127.0.0.2');
      assert.ok(opened instanceof TestSocket, 'the share has room for it');
      opened.client.pause();
      sockets.push(opened);
    }
    const refused = await open('127.0.0.2');
    assert.ok(!(refused instanceof TestSocket));
    assert.deepEqual([refused.status, refused.body.code], [429, 'RATE_LIMITED']);
    const other = await open('127.0.0.3');
    assert.ok(other instanceof TestSocket);
    await other.until(({ length }) => length === 3);
    sockets[0]!.client.resume();
    await sockets[0]!.until(({ length }) => length === 3);
    sockets[1]!.close();
    for (let n = 0; n < 2; n++)
      await until('it has room for another', async () => {
        const again = await open('127.0.0.2');
        if (again instanceof TestSocket) sockets.push(again);
        return again instanceof TestSocket;
      });
    for (const one of [...sockets, other]) one.close();
  });
});

describe('what answers hold together', () => {
  let nowMs = 0;
  let app: HttpServer;
  let url: string;
  let answers: Answers;
  /** Of answers that are being made. */
  const gates: PromiseWithResolvers<string>[] = [];
  /** Who waits for the making to begin, by the path. */
  const begins = new Map<string, (gate: PromiseWithResolvers<string>) => void>();
  before(async () => {
    app = await createHttpServer({ log: createLogger('test', 'fatal') });
    const clientOf = ({ headers }: { readonly headers: Record<string, unknown> }) => {
      const key = String(headers['x-client']);
      return { key, address: key, isExempt: key === 'own', isRelayed: false };
    };
    answers = new Answers(clientOf, () => nowMs);
    answers.watch(app);
    app.get<{ Params: { bytes: number } }>('/make/:bytes', async ({ params, url: path }, reply) => {
      answers.of(reply)(Number(params.bytes));
      const gate = Promise.withResolvers<string>();
      gates.push(gate);
      begins.get(path)!(gate);
      return gate.promise;
    });
    url = await listen(app, '127.0.0.1', 0);
  });
  after(() => app.close());

  let asked = 0;
  /** Asks for an answer that is made until `gates` says what it is. */
  async function make(client: string, bytes: number) {
    const path = `/make/${bytes}?n=${asked++}`;
    const { promise: begun, resolve } = Promise.withResolvers<PromiseWithResolvers<string>>();
    begins.set(path, resolve);
    const answer = ask(`${url}${path}`, '127.0.0.1', { 'x-client': client });
    answer.catch(() => {});
    const gate = await Promise.race([begun, answer]);
    return 'status' in gate ? `${gate.status} ${gate.code}` : { answer, gate };
  }
  const made = async (client: string, bytes: number) => {
    const one = await make(client, bytes);
    assert.ok(typeof one !== 'string', `${client} was refused: ${one}`);
    return one;
  };

  test('heavy ones are made few at a time; one of our own is made beside those of strangers', async () => {
    const first = await made('a', 20 * MIB);
    assert.equal(await make('a', 20 * MIB), '429 RATE_LIMITED');
    assert.equal(await make('b', 20 * MIB), '503 OVERLOADED');
    const own = await made('own', 20 * MIB);
    await made('b', MIB);
    for (const { gate, answer } of [first, own]) {
      gate.resolve('done');
      assert.equal(await (await answer).rest(), 'done');
    }
    const next = await made('b', 20 * MIB);
    for (const gate of gates) gate.resolve('done');
    await (await next.answer).rest();
    while (answers.held > 0) await new Promise(setImmediate);
  });

  test('a client that has one heavy answer after another lets another have its turn', async () => {
    const first = await made('a', 20 * MIB);
    assert.equal(await make('b', 20 * MIB), '503 OVERLOADED');
    first.gate.resolve('done');
    await (await first.answer).rest();
    while (answers.held > 0) await new Promise(setImmediate);
    assert.equal(await make('a', 20 * MIB), '429 RATE_LIMITED');
    await using stack = new AsyncDisposableStack();
    const serve = async (client: string) => {
      const one = await made(client, 20 * MIB);
      stack.defer(() => one.gate.resolve('done'));
      one.gate.resolve('done');
      await (await one.answer).rest();
      while (answers.held > 0) await new Promise(setImmediate);
    };
    for (const client of ['c', 'b', 'a']) await serve(client);
    // Whoever does not come back is waited for a moment.
    const last = await made('a', 20 * MIB);
    assert.equal(await make('d', 20 * MIB), '503 OVERLOADED');
    last.gate.resolve('done');
    await (await last.answer).rest();
    while (answers.held > 0) await new Promise(setImmediate);
    assert.equal(await make('a', 20 * MIB), '429 RATE_LIMITED');
    nowMs += 5_000;
    await serve('a');
  });

  test('strangers who read nothing shut nobody out for long: the oldest of their answers end', async () => {
    const all = [];
    for (let n = 0; n < 192; n++) all.push(await made(`many ${n % 6}`, MIB));
    assert.equal(await make('a', MIB), '503 OVERLOADED');
    const own = await made('own', 32 * MIB);
    nowMs += 60_000;
    await made('a', MIB);
    await assert.rejects(all[0]!.answer);
    own.gate.resolve('done');
    assert.equal(await (await own.answer).rest(), 'done');
    for (const gate of gates) gate.resolve('done');
    await Promise.all(all.slice(1).map(async ({ answer }) => (await answer).rest()));
    while (answers.held > 0) await new Promise(setImmediate);
  });
});
