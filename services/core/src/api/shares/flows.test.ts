import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  FAIR_BYTES,
  type Flow,
  Flows,
  readingLine,
  sendingLine,
  slowestOf,
  WHOLE_BYTES,
  WHOLE_MINUTES,
} from './flows.ts';
import { TestReader } from './testing/reader.ts';

const MINUTE_MS = 60_000;

const client = (key: string, isExempt = false) => ({ key, isExempt });
const flow = (key: string, passed: number | undefined, isExempt = false, keptBy = FAIR_BYTES): Flow => ({
  client: client(key, isExempt),
  ...{ passed, keptBy },
});

/** Each client is a network of its own. */
const withoutNetworks = (heldBy: (key: string) => number) => ({ heldBy, heldNear: heldBy });
const ALL_HAVE_ONE = withoutNetworks((key) => (key === 'new' ? 0 : 1));

test('a slow reader of the client that has most goes: no reader of our own, none that waits for bytes itself, none of a client with little', () => {
  const held = new Map<string, number>([
    ['own', 9],
    ['much', 8],
    ['more', 3],
    ['little', 1],
    ...Array.from({ length: 9 }, (_, count) => [`has ${count}`, count] as const),
  ]);
  const heldBy = (key: string) => held.get(key) ?? 0;
  const own = flow('own', 0, true);
  const waiting = flow('much', undefined);
  const little = flow('little', 1);
  const more = flow('more', 2);
  const much = flow('much', 4);
  const slower = flow('much', 3);
  const all = [own, waiting, little, much, slower, more];
  const pick = (flows: Flow[]) =>
    Array.from({ length: 9 }, (_, count) =>
      slowestOf(flows, client(`has ${count}`), withoutNetworks(heldBy)),
    );
  const none = [undefined, undefined];
  assert.deepEqual(pick(all), [...Array.from({ length: 7 }, () => slower), ...none]);
  const rest = Array.from({ length: 7 }, () => undefined);
  assert.deepEqual(pick([own, waiting, little, more]), [more, more, ...rest]);
  assert.deepEqual(pick([own, waiting, little]), [little, undefined, ...rest]);
  assert.equal(
    slowestOf(all, client('has 8', true), withoutNetworks(heldBy)),
    slower,
    'our own come as if they had none',
  );
  const [longest, later] = [flow('much', 7), flow('much', 7)];
  assert.equal(slowestOf([longest, later], client('new'), withoutNetworks(heldBy)), longest);
});

test('whoever takes a fair amount in a minute is not slow: its client loses a place of several to one that has none, and never its last', () => {
  const strangers = Array.from({ length: 48 }, () => flow('much', FAIR_BYTES));
  const honest = flow('honest', FAIR_BYTES);
  const heldBy = (key: string) => (key === 'much' ? 48 : key === 'honest' ? 1 : 0);
  assert.equal(slowestOf([...strangers, honest], client('new'), withoutNetworks(heldBy)), strangers[0]);
  assert.equal(slowestOf([honest], client('new'), withoutNetworks(heldBy)), undefined);
  assert.equal(
    slowestOf([...strangers, honest], client('honest'), withoutNetworks(heldBy)),
    undefined,
    'it has one',
  );
  const slow = flow('much', FAIR_BYTES - 1);
  const slower = flow('honest', 0);
  assert.equal(slowestOf([...strangers, slow, slower], client('new'), withoutNetworks(heldBy)), slow);
});

test('where nobody is slow and each has one, the slowest of the network that has most goes, for who leaves it no less than its own has', () => {
  const near = new Map<string, number>([
    ['many', 5],
    ['few', 4],
    ['has 3', 3],
    ['has 4', 4],
  ]);
  const holdings = {
    heldBy: (key: string) => (key.startsWith('new') ? 0 : 1),
    heldNear: (key: string) => near.get(key.replace(/^new of /, '').replace(/ [a-z]$/, '')) ?? 0,
  };
  const [slower, faster] = [flow('many a', FAIR_BYTES), flow('many b', FAIR_BYTES + 1)];
  const unknown = [flow('many c', undefined), flow('many d', 1, true)];
  const few = flow('few a', WHOLE_BYTES, false, WHOLE_BYTES);
  const all = [few, ...unknown, faster, slower];
  const pick = (key: string, isExempt = false) => slowestOf(all, client(key, isExempt), holdings);
  assert.deepEqual([pick('new'), pick('new of has 3')], [slower, slower]);
  assert.deepEqual(
    [pick('new of has 4'), pick('new of many'), pick('few')],
    [undefined, undefined, undefined],
  );
  assert.equal(pick('new of many', true), slower);
  const slow = flow('few b', WHOLE_BYTES - 1, false, WHOLE_BYTES);
  assert.equal(slowestOf([...all, slow], client('new of many'), holdings), slow, 'a slow one goes first');
});

test('whoever comes, each that goes is slow where one is, of a client with most, and no client is left with less than who came, unless that had none', () => {
  const bounds = [WHOLE_BYTES, FAIR_BYTES] as const;
  const near = bounds.map((bound) => fc.integer({ min: bound - 1, max: bound + 1 }));
  const passed = fc.option(fc.oneof(fc.nat(5), ...near), { nil: undefined });
  const flows = fc.array(
    fc.record({ of: fc.nat(4), passed, isOwn: fc.boolean(), keptBy: fc.constantFrom(...bounds) }),
    { maxLength: 30 },
  );
  const comers = fc.array(fc.record({ of: fc.nat(6), isOwn: fc.boolean() }), { maxLength: 30 });
  const nameOf = ({ of, isOwn }: { of: number; isOwn: boolean }) => `${isOwn ? 'own' : ''}${of}`;
  fc.assert(
    fc.property(flows, comers, (listed, coming) => {
      const held = new Map<string, number>();
      const heldBy = (key: string) => held.get(key) ?? 0;
      const note = (key: string, more: number) => held.set(key, heldBy(key) + more);
      const all = new Set(listed.map((one) => flow(nameOf(one), one.passed, one.isOwn, one.keptBy)));
      for (const one of all) note(one.client.key, 1);
      for (const comer of coming) {
        const key = nameOf(comer);
        const counted = comer.isOwn ? 0 : heldBy(key);
        const strangers = [...all].filter(({ client, passed }) => !client.isExempt && passed !== undefined);
        const slow = strangers.filter((one) => {
          const has = heldBy(one.client.key);
          return one.passed! < (has === 1 ? one.keptBy : FAIR_BYTES) && has > counted + Math.min(1, counted);
        });
        const several = strangers.filter((one) => counted === 0 && heldBy(one.client.key) > 1);
        const may = slow.length > 0 ? slow : several;
        const most = Math.max(...may.map((one) => heldBy(one.client.key)));
        const first = may.filter((one) => heldBy(one.client.key) === most);
        const going = slowestOf(all, client(key, comer.isOwn), withoutNetworks(heldBy));
        assert.equal(going === undefined, may.length === 0);
        if (!going) continue;
        assert.ok(first.includes(going));
        assert.equal(going.passed, Math.min(...first.map((one) => one.passed!)));
        all.delete(going);
        note(going.client.key, -1);
        note(key, 1);
        assert.ok(comer.isOwn || heldBy(key) === 1 || heldBy(going.client.key) >= heldBy(key));
      }
    }),
  );
});

test('who has taken all at some looks of a minute is slow all the same; where nothing waits at most of them it is the store that is', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  for (const random of [0, 0.5, 0.999]) {
    const flows = new Flows({ random: () => random });
    const watch = (key: string) => {
      const reader = new TestReader(key);
      flows.watch(readingLine(reader.reply), client(key), () => {});
      return reader;
    };
    const [knowing, patient] = [watch('knowing'), watch('patient')];
    const endSlowest = () => flows.endSlowest(client('new'), ALL_HAVE_ONE);
    t.mock.timers.tick(MINUTE_MS / 4);
    patient.socket.writableLength = 0;
    t.mock.timers.tick(MINUTE_MS / 2);
    // Nothing waits at the end.
    knowing.socket.writableLength = 0;
    t.mock.timers.tick(MINUTE_MS / 4);
    assert.equal(endSlowest(), true);
    assert.deepEqual([knowing.isEnded, patient.isEnded], [true, false]);
    assert.equal(endSlowest(), false);
    patient.socket.writableLength = 1;
    t.mock.timers.tick(MINUTE_MS);
    assert.equal(endSlowest(), true, 'each minute counts by itself');
    assert.equal(patient.isEnded, true);
  }
});

test('readers are looked at at different times, which they do not know', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const everyMs = [0, 0.5, 0.999].map((random) => {
    const flows = new Flows({ random: () => random });
    const reader = new TestReader('reader');
    let looks = 0;
    Object.defineProperty(reader.socket, 'writableLength', { get: () => looks++ * 0 });
    using _watch = flows.watch(readingLine(reader.reply), client('reader'), () => {});
    let atMs = 0;
    const before = looks;
    for (; looks === before; atMs += 500) t.mock.timers.tick(500);
    return atMs;
  });
  assert.deepEqual(everyMs, [10_000, 7_000, 5_000]);
});

test('an answer that waits behind another one of its connection is as slow as that', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const flows = new Flows();
  const reader = new TestReader('reader');
  reader.socket.writableLength = 0;
  reader.raw.writableLength = 1;
  flows.watch(readingLine(reader.reply), client('reader'), () => {});
  t.mock.timers.tick(MINUTE_MS);
  assert.equal(flows.endSlowest(client('new'), ALL_HAVE_ONE), true);
  assert.equal(reader.isEnded, true);
});

/** What a sender sends is set by hand as what a reader takes is. */
function sendingBy({ socket, reply }: TestReader) {
  const sent = {
    get bytesRead() {
      return socket.bytesWritten;
    },
  };
  return sendingLine(
    { raw: { socket: sent, readableLength: 0, complete: false }, log: reply.log } as never,
    () => socket.destroy(),
  );
}

test('who sends, or reads what has no rest, keeps its only place for ten minutes: the two slowest ended each other for ever', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const flows = new Flows({ random: () => 0 });
  const watch = (key: string, lineOf: (reader: TestReader) => ReturnType<typeof sendingBy>) => {
    const reader = new TestReader(key);
    flows.watch(lineOf(reader), client(key), () => {});
    return { key, reader };
  };
  const all = [
    watch('sender', sendingBy),
    watch('reader of a CAR', ({ reply }) => readingLine(reply, { isWhole: true })),
    watch('reader', ({ reply }) => readingLine(reply)),
    watch('sender of a byte', sendingBy),
    ...[watch('sender of two', sendingBy), watch('sender of two', sendingBy)],
  ];
  const kept = () => all.filter(({ reader }) => !reader.isEnded).map(({ key }) => key);
  const countOf = (of: string) => kept().filter((key) => key === of).length;
  const aMinute = () => {
    for (const { key, reader } of all) reader.take(key === 'sender of a byte' ? 1 : WHOLE_BYTES);
    t.mock.timers.tick(MINUTE_MS);
    while (flows.endSlowest(client('new'), withoutNetworks(countOf)));
    return kept();
  };
  for (let minutes = 1; minutes < WHOLE_MINUTES; minutes++)
    assert.deepEqual(aMinute(), ['sender', 'reader of a CAR', 'sender of two'], `minute ${minutes}`);
  assert.deepEqual(aMinute(), []);
});

test('a sender is slow where we wait for it: not while what it sent waits for us, nor once all has come', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const flows = new Flows();
  const send = () => {
    const ended: string[] = [];
    const raw = { socket: { bytesRead: 0 }, readableLength: 0, complete: false };
    const line = sendingLine({ raw, log: { debug() {} } } as never, ({ code }) => ended.push(code));
    flows.watch(line, client('sender'), () => ended.push('given back'));
    return { raw, ended };
  };
  const [slow, waiting, whole, done] = [send(), send(), send(), send()];
  waiting.raw.readableLength = 1;
  whole.raw.complete = true;
  slow.raw.socket.bytesRead += 1;
  t.mock.timers.tick(MINUTE_MS);
  done.raw.complete = true;
  const endSlowest = () => flows.endSlowest(client('new'), ALL_HAVE_ONE);
  assert.deepEqual([endSlowest(), endSlowest()], [true, false]);
  const rest = [waiting, whole, done];
  assert.deepEqual(slow.ended, ['given back', 'OVERLOADED']);
  t.mock.timers.tick(5 * MINUTE_MS);
  for (const { ended } of rest) assert.deepEqual(ended, [], 'where nothing passes, it is not its turn');
  waiting.raw.readableLength = 0;
  t.mock.timers.tick(2 * MINUTE_MS);
  assert.deepEqual(waiting.ended, ['given back', 'REQUEST_TIMEOUT']);
});
