import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FAIR_BYTES, slowestOf, type Taker, Takers } from './takers.ts';
import { TestReader } from './testing/reader.ts';

const MINUTE_MS = 60_000;

const client = (key: string, isExempt = false) => ({ key, isExempt });
const taker = (key: string, taken: number | undefined, isExempt = false): Taker => ({
  client: client(key, isExempt),
  taken,
});

test('a slow reader of the client that has most goes: no reader of our own, none that waits for bytes itself, none of a client with little', () => {
  const held = new Map<string, number>([
    ['own', 9],
    ['much', 8],
    ['more', 3],
    ['little', 1],
    ...Array.from({ length: 9 }, (_, count) => [`has ${count}`, count] as const),
  ]);
  const heldBy = (key: string) => held.get(key) ?? 0;
  const own = taker('own', 0, true);
  const waiting = taker('much', undefined);
  const little = taker('little', 1);
  const more = taker('more', 2);
  const much = taker('much', 4);
  const slower = taker('much', 3);
  const all = [own, waiting, little, much, slower, more];
  const pick = (takers: Taker[]) =>
    Array.from({ length: 9 }, (_, count) => slowestOf(takers, client(`has ${count}`), heldBy));
  const none = [undefined, undefined];
  assert.deepEqual(pick(all), [...Array.from({ length: 7 }, () => slower), ...none]);
  const rest = Array.from({ length: 7 }, () => undefined);
  assert.deepEqual(pick([own, waiting, little, more]), [more, more, ...rest]);
  assert.deepEqual(pick([own, waiting, little]), [little, undefined, ...rest]);
  assert.equal(slowestOf(all, client('has 8', true), heldBy), slower, 'our own come as if they had none');
  const [longest, later] = [taker('much', 7), taker('much', 7)];
  assert.equal(slowestOf([longest, later], client('new'), heldBy), longest);
});

test('whoever takes a fair amount in a minute is not slow: its client loses a place of several to one that has none, and never its last', () => {
  const strangers = Array.from({ length: 48 }, () => taker('much', FAIR_BYTES));
  const honest = taker('honest', FAIR_BYTES);
  const heldBy = (key: string) => (key === 'much' ? 48 : key === 'honest' ? 1 : 0);
  assert.equal(slowestOf([...strangers, honest], client('new'), heldBy), strangers[0]);
  assert.equal(slowestOf([honest], client('new'), heldBy), undefined);
  assert.equal(slowestOf([...strangers, honest], client('honest'), heldBy), undefined, 'it has one');
  const slow = taker('much', FAIR_BYTES - 1);
  const slower = taker('honest', 0);
  assert.equal(slowestOf([...strangers, slow, slower], client('new'), heldBy), slow);
});

test('whoever comes, each that goes is slow where one is, of a client with most, and no client is left with less than who came, unless that had none', () => {
  const bytes = fc.oneof(fc.nat(5), fc.integer({ min: FAIR_BYTES - 1, max: FAIR_BYTES + 1 }));
  const takers = fc.array(
    fc.record({ of: fc.nat(4), taken: fc.option(bytes, { nil: undefined }), isOwn: fc.boolean() }),
    { maxLength: 30 },
  );
  const comers = fc.array(fc.record({ of: fc.nat(6), isOwn: fc.boolean() }), { maxLength: 30 });
  const nameOf = ({ of, isOwn }: { of: number; isOwn: boolean }) => `${isOwn ? 'own' : ''}${of}`;
  fc.assert(
    fc.property(takers, comers, (listed, coming) => {
      const held = new Map<string, number>();
      const heldBy = (key: string) => held.get(key) ?? 0;
      const note = (key: string, more: number) => held.set(key, heldBy(key) + more);
      const all = new Set(listed.map((one) => taker(nameOf(one), one.taken, one.isOwn)));
      for (const one of all) note(one.client.key, 1);
      for (const comer of coming) {
        const key = nameOf(comer);
        const counted = comer.isOwn ? 0 : heldBy(key);
        const strangers = [...all].filter(({ client, taken }) => !client.isExempt && taken !== undefined);
        const slow = strangers.filter(
          (one) => one.taken! < FAIR_BYTES && heldBy(one.client.key) > counted + Math.min(1, counted),
        );
        const several = strangers.filter((one) => counted === 0 && heldBy(one.client.key) > 1);
        const may = slow.length > 0 ? slow : several;
        const most = Math.max(...may.map((one) => heldBy(one.client.key)));
        const first = may.filter((one) => heldBy(one.client.key) === most);
        const going = slowestOf(all, client(key, comer.isOwn), heldBy);
        assert.equal(going === undefined, may.length === 0);
        if (!going) continue;
        assert.ok(first.includes(going));
        assert.equal(going.taken, Math.min(...first.map((one) => one.taken!)));
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
    const takers = new Takers({ random: () => random });
    const watch = (key: string) => {
      const reader = new TestReader(key);
      takers.watch(reader.reply, client(key), () => {});
      return reader;
    };
    const [knowing, patient] = [watch('knowing'), watch('patient')];
    const endSlowest = () => takers.endSlowest(client('new'), (key) => (key === 'new' ? 0 : 1));
    t.mock.timers.tick(MINUTE_MS / 4);
    patient.socket.writableLength = 0;
    t.mock.timers.tick(MINUTE_MS / 2);
    // Nothing waits at the end.
    knowing.socket.writableLength = 0;
    assert.equal(endSlowest(), false, 'not yet a minute');
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
    const takers = new Takers({ random: () => random });
    const reader = new TestReader('reader');
    let looks = 0;
    Object.defineProperty(reader.socket, 'writableLength', { get: () => looks++ * 0 });
    using _watch = takers.watch(reader.reply, client('reader'), () => {});
    let atMs = 0;
    const before = looks;
    for (; looks === before; atMs += 500) t.mock.timers.tick(500);
    return atMs;
  });
  assert.deepEqual(everyMs, [10_000, 7_000, 5_000]);
});
