import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { buildNetworkMessage, type NetworkDraft, type Signer } from '@skerry/client';
import { MESSAGE_FILTERS, namesIn } from '@skerry/protocol/api/core/common/filters';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { type Frame, TestSocket } from '../../testing/sockets.ts';

const LIST = '/messages.json';
const { alice, bob } = signers;

async function send(core: TestCore, draft: NetworkDraft, signer: Signer = alice): Promise<string> {
  const { body, itemHash } = buildNetworkMessage(draft, signer);
  const { status, body: answer } = await core.post('/messages', body);
  assert.equal(status, 200, JSON.stringify(answer));
  return itemHash;
}

const note = (n: number | string, channel = 'notes'): NetworkDraft => ({
  type: 'POST',
  channel,
  content: { type: 'note', content: { n } },
});

const hashesIn = (messages: readonly Frame[]): string[] => messages.map((one) => one.item_hash);

describe('messages over a WebSocket', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore();
    url = `${await core.listen()}/api/ws0/messages`;
  });
  after(() => core[Symbol.asyncDispose]());

  const listed = async (query: string): Promise<Frame[]> => {
    const { status, body } = await core.get(`${LIST}?pagination=500&${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body.messages;
  };

  test('some from before, the oldest first, each as in the list, or without content', async () => {
    for (let n = 0; n < 15; n++) await send(core, note(n, 'history'));
    const messages = (await listed('channels=history')).reverse();
    const without = messages.slice(-2).map(({ content: _content, ...rest }) => rest);
    for (const [query, expected] of [
      ['', messages.slice(-10)],
      ['&history=3', messages.slice(-3)],
      ['&history=199', messages],
      ['&history=2&excludeContent=true', without],
      ['&history=2&excludeContent=True', without],
    ] as const) {
      const socket = await TestSocket.open(`${url}?channels=history${query}`);
      await socket.until(({ length }) => length === expected.length);
      assert.deepEqual(socket.frames, expected, query);
      socket.close();
    }
  });

  test('history is the beginning of the list, in reverse, whatever its order and however much of the contents', async () => {
    for (const n of [1, 2, 3, 4]) await send(core, note(n, 'order'));
    for (const query of [
      'sortOrder=1',
      'sortOrder=-1',
      'sortBy=time&sortOrder=1',
      'sortBy=tx-time',
      'sortBy=tx-time&sortOrder=1',
      'contentFormat=headers',
      'contentFormat=none',
      'contentFormat=full&excludeContent=true',
    ]) {
      const socket = await TestSocket.open(`${url}?channels=order&history=3&${query}`);
      await socket.until(({ length }) => length === 3);
      assert.deepEqual(socket.frames, (await listed(`channels=order&${query}`)).slice(0, 3).reverse(), query);
      socket.close();
    }
  });

  test('what is new has as much of its content as is asked for', async () => {
    const formats = ['full', 'headers', 'none'];
    const open = (format: string) =>
      TestSocket.open(`${url}?channels=formats&history=0&contentFormat=${format}`);
    const sockets = await Promise.all(formats.map(open));
    await send(core, note('new', 'formats'));
    for (const [index, socket] of sockets.entries()) {
      await socket.until(({ length }) => length === 1);
      assert.deepEqual(socket.frames, await listed(`channels=formats&contentFormat=${formats[index]}`));
      socket.close();
    }
  });

  test('what is new comes once it is in force, as in the list', async () => {
    const socket = await TestSocket.open(`${url}?channels=live&history=0`);
    const hashes = [await send(core, note(1, 'live')), await send(core, note(2, 'live'))];
    await send(core, note(3, 'other'));
    hashes.push(await send(core, note(4, 'live')));
    await socket.until(({ length }) => length === hashes.length);
    assert.deepEqual(socket.hashes, hashes);
    assert.deepEqual(socket.frames, (await listed('channels=live')).reverse());
    socket.close();
  });

  test('between what was and what comes nothing is missing and nothing comes twice, whoever writes meanwhile', async () => {
    const opened: { socket: TestSocket; history: number }[] = [];
    let isWriting = true;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; n < 40; n++) await send(core, note(`${writer} ${n}`, 'busy'));
    });
    const opening = (async () => {
      for (let n = 0; isWriting; n++) {
        const history = [0, 1, 7, 199][n % 4]!;
        opened.push({ socket: await TestSocket.open(`${url}?channels=busy&history=${history}`), history });
      }
    })();
    await Promise.all(writers);
    isWriting = false;
    await opening;
    const last = await send(core, note('last', 'busy'));
    const { body } = await core.get('/events?cursor=0&limit=100');
    const log: string[] = [];
    for (
      let page = body;
      page.events.length > 0;
      page = (await core.get(`/events?limit=100&cursor=${page.next_cursor}`)).body
    )
      for (const { kind, data } of page.events)
        if (kind === 'message' && data.channel === 'busy') log.push(data.item_hash);
    const timeOf = new Map((await listed('channels=busy')).map((one) => [one.item_hash, one.time as number]));
    const newestOf = (messages: readonly string[], count: number) => {
      const inOrder = messages.toSorted((a, b) => timeOf.get(a)! - timeOf.get(b)! || (a < b ? 1 : -1));
      return inOrder.slice(inOrder.length - Math.min(count, inOrder.length));
    };
    /** The newest of what there was at some moment, then the rest of the log in its order. */
    const fitsMoment = (hashes: readonly string[], history: number, moment: number) =>
      isDeepStrictEqual(hashes, [...newestOf(log.slice(0, moment), history), ...log.slice(moment)]);
    for (const { socket, history } of opened) {
      await socket.until((frames) => frames.at(-1)?.item_hash === last);
      const { hashes } = socket;
      assert.equal(new Set(hashes).size, hashes.length, 'nothing twice');
      assert.ok(
        log.some((_, moment) => fitsMoment(hashes, history, moment)),
        `with ${history} from before`,
      );
      socket.close();
    }
  });

  test('each filter gives what the list gives, of what was and of what comes', async () => {
    const asked = new Map<string, { live: TestSocket; query: string }>();
    const first = await send(core, note('first', 'filters'));
    const pool = (one: Frame) =>
      [
        one.sender,
        one.item_hash,
        one.channel,
        one.chain,
        one.type,
        one.time,
        Math.ceil(one.time) + 1,
        ...[one.content.type, one.content.ref, one.content.key, one.content.item_hash],
        ...(one.content.content?.tags ?? []),
      ].filter((value) => value !== undefined && value !== null);
    const drafts: [NetworkDraft, Signer][] = [
      [
        {
          type: 'POST',
          channel: 'filters',
          content: { type: 'chat', ref: 'hall', content: { tags: ['a', 'b'] } },
        },
        alice,
      ],
      [{ type: 'POST', channel: 'elsewhere', content: { type: 'chat', content: { tags: ['b'] } } }, bob],
      [{ type: 'AGGREGATE', channel: 'filters', content: { key: 'profile', content: { name: 'x' } } }, bob],
      [
        { type: 'POST', channel: null, content: { type: 'amend', ref: first, content: { tags: ['c'] } } },
        alice,
      ],
      [{ type: 'FORGET', content: { hashes: [first], reason: 'enough' } }, alice],
    ];
    // What the values of a first round are is what the second one is asked for.
    for (const [draft, signer] of drafts.slice(0, 4)) await send(core, draft, signer);
    const values = new Set([
      'none',
      'processed',
      'credit',
      0,
      ...(await listed('')).slice(0, 4).flatMap(pool),
    ]);
    let refused = 0;
    for (const filter of Object.values(MESSAGE_FILTERS))
      for (const name of namesIn(filter, LIST))
        for (const value of values) {
          const query = `${name}=${encodeURIComponent(String(value))}`;
          const opened = await TestSocket.tryOpen(`${url}?${query}&history=0`);
          if (opened instanceof TestSocket) asked.set(query, { live: opened, query });
          else {
            const { status, body } = await core.get(`${LIST}?${query}`);
            assert.deepEqual([opened.status, opened.body.code], [422, body.code], query);
            assert.ok(status >= 400, query);
            refused++;
          }
        }
    assert.ok(asked.size > 80 && refused > 20, `${asked.size} asked, ${refused} refused`);
    const everything = await TestSocket.open(`${url}?history=0`);
    for (const [{ content, ...draft }, signer] of drafts)
      await send(
        core,
        {
          ...draft,
          content: {
            ...content,
            ...(draft.type === 'POST' ? { content: { ...(content.content as object), again: 1 } } : {}),
          },
        },
        signer,
      );
    await core.rooms.pipeline.idle();
    const last = await send(core, note('last', 'filters'));
    await everything.until((frames) => frames.at(-1)?.item_hash === last);
    const came = new Set(everything.hashes);
    assert.equal(came.size, everything.frames.length);
    // What was taken back meanwhile did come.
    const inForce = new Set(hashesIn(await listed('')));
    for (const { live, query } of asked.values()) {
      const all = await listed(query);
      const expected = hashesIn(all).filter((hash) => came.has(hash));
      const held = () => live.hashes.filter((hash) => inForce.has(hash));
      await live.until(() => held().length >= expected.length);
      assert.deepEqual(held().sort(), expected.sort(), query);
      live.close();
      const before = await TestSocket.open(`${url}?${query}&history=199`);
      await before.until(({ length }) => length === Math.min(all.length, 199));
      assert.deepEqual(before.frames, all.slice(0, 199).reverse(), query);
      before.close();
    }
    everything.close();
  });

  test('who asks for what cannot be is refused before the upgrade, and others get an answer in HTTP', async () => {
    for (const query of [
      'history=200',
      'history=-1',
      'history=x',
      'startDate=x',
      'startDate=-1',
      'startDate=9&endDate=8',
      'msgTypes=NONE',
      'hashes=zz',
      'addresses=,',
      'colour=red',
      'msgType=POST&msgTypes=POST',
      'excludeContent=7',
      'contentFormat=some',
      'sortBy=size',
      'sortOrder=0',
      'pagination=3',
      'page=2',
      'cursor=',
    ]) {
      const refused = await TestSocket.tryOpen(`${url}?${query}`);
      assert.ok(!(refused instanceof TestSocket), query);
      assert.equal(refused.status, 422, query);
      assert.equal(refused.body.status, 'error', query);
    }
    const plain = await fetch(url);
    assert.deepEqual([plain.status, plain.headers.get('upgrade')], [426, 'websocket']);
    assert.equal(((await plain.json()) as Frame).code, 'UPGRADE_REQUIRED');
    const elsewhere = await TestSocket.tryOpen(url.replace('/api/ws0/messages', '/api/v0/version'));
    assert.ok(!(elsewhere instanceof TestSocket) && elsewhere.status === 200);
    const nowhere = await TestSocket.tryOpen(`${url}/x`);
    assert.ok(!(nowhere instanceof TestSocket) && nowhere.body.code === 'ROUTE_NOT_FOUND');
  });
});

test('a node that stops says so to its readers', async () => {
  await using core = await createTestCore();
  const url = await core.listen();
  const sockets = [
    await TestSocket.open(`${url}/api/ws0/messages`),
    await TestSocket.open(`${url}/api/ws0/status`),
  ];
  core.stop();
  for (const socket of sockets)
    assert.deepEqual(await socket.closed, { code: 1001, reason: 'the node stops' });
});

test('what the node counts comes once, as in /metrics.json', async () => {
  await using core = await createTestCore();
  const url = await core.listen();
  const messages = await TestSocket.open(`${url}/api/ws0/messages`);
  const socket = await TestSocket.open(`${url}/api/ws0/status`);
  await socket.until(({ length }) => length === 1);
  assert.deepEqual(socket.frames[0], (await core.api.inject({ url: '/metrics.json' })).json());
  assert.equal(socket.frames[0].pyaleph_ws_messages_connections_active, 1);
  assert.equal(socket.frames[0].pyaleph_ws_messages_connections_max, 10_000);
  assert.match(await core.rooms.metrics.text(), /^skerry_sockets_open\{kind="status"\} 1$/m);
  messages.close();
  socket.close();
});
