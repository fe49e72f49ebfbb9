import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FairSlots } from './fair-slots.ts';

const client = (key: string, isExempt = false) => ({ key, isExempt });
const create = (more: Partial<ConstructorParameters<typeof FairSlots>[0]> = {}) =>
  new FairSlots({
    running: { total: 3, reserve: 1, perClient: 2 },
    waiting: { total: 10, reserve: 2, perClient: 3 },
    waitMs: 60_000,
    what: 'questions',
    retryAfter: 1,
    ...more,
  });

test('who asks for much waits for itself: others have their turn before it, and our own find a place', async () => {
  const slots = create();
  const held = [await slots.take(client('a')), await slots.take(client('a'))];
  assert.deepEqual([slots.isFreeFor(client('a')), slots.isFreeFor(client('own', true))], [false, true]);
  const order: string[] = [];
  const waiting = ['a', 'a', 'b'].map(async (key) => {
    const slot = await slots.take(client(key));
    order.push(key);
    return slot;
  });
  (await slots.take(client('own', true)))[Symbol.dispose]();
  held[0]![Symbol.dispose]();
  (await waiting[2]!)[Symbol.dispose]();
  assert.deepEqual(order, ['b']);
  (await waiting[0]!)[Symbol.dispose]();
  (await waiting[1]!)[Symbol.dispose]();
  assert.deepEqual([order, slots.waiting], [['b', 'a', 'a'], 0]);
});

test('whoever has had most of its turns waits for who has had none, though it has nothing running', async () => {
  const slots = create({ running: { total: 2, reserve: 0, perClient: 1 } });
  const order: string[] = [];
  const waiting: Promise<void>[] = [];
  const run = (key: string) => {
    const turn = slots.run(client(key), async () => void order.push(key));
    waiting.push(turn);
    return turn;
  };
  const held = [await slots.take(client('a')), await slots.take(client('b'))];
  for (const key of ['a', 'a', 'b', 'c']) void run(key);
  held[0]![Symbol.dispose]();
  await Promise.all(waiting.slice(3));
  assert.deepEqual(order, ['c']);
  held[1]![Symbol.dispose]();
  await Promise.all(waiting);
  assert.deepEqual(order.toSorted(), ['a', 'a', 'b', 'c']);
});

test('a few clients do not keep others out of the line: who has none there takes the newest place of who has most', async () => {
  const slots = create({
    running: { total: 1, reserve: 0, perClient: 1 },
    waiting: { total: 2, reserve: 0, perClient: 2 },
  });
  const held = await slots.take(client('a'));
  const [older, newer] = [slots.take(client('b')), slots.take(client('b'))];
  const coming = slots.take(client('c'));
  await assert.rejects(newer, { code: 'OVERLOADED' });
  await assert.rejects(slots.take(client('d')), { code: 'OVERLOADED' }, 'each has one');
  held[Symbol.dispose]();
  (await older)[Symbol.dispose]();
  (await coming)[Symbol.dispose]();
  assert.equal(slots.waiting, 0);
});

test('whose turn is next is known, unless all who wait have their share', async () => {
  const slots = create({ running: { total: 3, reserve: 0, perClient: 2 } });
  const leaving = new AbortController();
  const wait = (key: string) => void slots.take(client(key), leaving.signal).catch(() => {});
  const next = () => slots.next?.key;
  const held = [await slots.take(client('a')), await slots.take(client('a')), await slots.take(client('b'))];
  assert.deepEqual([slots.heldBy('a'), slots.heldBy('b'), slots.heldBy('c')], [2, 1, 0]);
  wait('a');
  assert.equal(next(), undefined, 'it waits for itself');
  wait('b');
  assert.equal(next(), 'b');
  wait('c');
  assert.equal(next(), 'c', 'it has fewer');
  held[0]![Symbol.dispose]();
  assert.deepEqual([slots.heldBy('c'), next()], [1, 'a'], 'now all have one, and it was served first');
  leaving.abort();
  assert.equal(next(), undefined);
});

test('our own come as if they had none, however many they have', async () => {
  const slots = create({ running: { total: 4, reserve: 0, perClient: 2 } });
  const own = client('own', true);
  for (const one of [own, own, client('a'), client('b')]) await slots.take(one);
  const leaving = new AbortController();
  const waiting = [client('a'), own].map((one) => slots.take(one, leaving.signal));
  assert.equal(slots.next?.key, 'own');
  leaving.abort();
  assert.equal((await Promise.allSettled(waiting)).length, 2);
});

test('of clients of one network each waits for those of others that have fewer', async () => {
  const site = (network: number, number: number) => client(`2001:db8:${network}:${number}::/64`);
  const slots = create({ running: { total: 4, reserve: 0, perClient: 1 } });
  const own = await slots.take({ ...site(1, 9), isExempt: true });
  const held = [];
  for (const number of [1, 2, 3]) held.push(await slots.take(site(1, number)));
  const near = () => [site(1, 9), site(2, 9), client('198.51.100.1')].map(({ key }) => slots.heldNear(key));
  assert.deepEqual(near(), [3, 0, 0]);
  const order: string[] = [];
  const turns = [site(1, 4), site(1, 5), site(2, 1), client('198.51.100.1')].map(async (one) => {
    const slot = await slots.take(one);
    order.push(one.key);
    return slot;
  });
  assert.equal(slots.next?.key, site(2, 1).key);
  held[0]![Symbol.dispose]();
  await turns[2];
  assert.deepEqual([near(), slots.next?.key], [[2, 1, 0], '198.51.100.1']);
  held[1]![Symbol.dispose]();
  await turns[3];
  for (const turn of [turns[3]!, turns[2]!]) (await turn)[Symbol.dispose]();
  for (const one of [own, held[2]!]) one[Symbol.dispose]();
  for (const turn of turns.slice(0, 2)) (await turn)[Symbol.dispose]();
  assert.deepEqual([near(), order.length, slots.running], [[0, 0, 0], 4, 0]);
});

test('a slot that its client has to give up goes to whoever was next, not back to that client', async () => {
  const slots = create({ running: { total: 2, reserve: 0, perClient: 2 } });
  const order: string[] = [];
  const wait = async (key: string) => {
    const slot = await slots.take(client(key));
    order.push(key);
    return slot;
  };
  const [a, b] = [await slots.take(client('a')), await slots.take(client('b'))];
  const turns = ['a', 'b', 'c'].map(wait);
  b[Symbol.dispose]();
  await turns[2];
  assert.deepEqual([slots.heldBy('b'), slots.next?.key], [0, 'b']);
  slots.noteServed(client('a'));
  a[Symbol.dispose]();
  (await turns[1]!)[Symbol.dispose]();
  await turns[0];
  assert.deepEqual(order, ['c', 'b', 'a']);
});

test('a line has its end, for one client and for all; who leaves it, or is tired of it, is given no slot', async () => {
  const slots = create({ waiting: { total: 2, reserve: 0, perClient: 1 }, waitMs: 20 });
  const held = await slots.take(client('a'));
  await slots.take(client('a'));
  const leaving = new AbortController();
  const left = slots.take(client('a'), leaving.signal);
  await assert.rejects(slots.take(client('a')), {
    code: 'RATE_LIMITED',
    message: /2 questions at once, and 1 that/,
  });
  const tired = slots.take(client('b'));
  await assert.rejects(slots.take(client('c')), { code: 'OVERLOADED' });
  // In the moment of leaving, something is given back.
  leaving.signal.addEventListener('abort', () => held[Symbol.dispose]());
  leaving.abort(new Error('left'));
  await assert.rejects(left, /left/);
  await assert.rejects(slots.take(client('a'), leaving.signal), /left/);
  await tired;
  await assert.rejects(slots.take(client('a')), { code: 'OVERLOADED' });
  assert.equal(slots.waiting, 0);
});

test('whoever comes and goes, each has its share at most, and all who wait have a turn', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(3), { maxLength: 40 }), async (keys) => {
      const slots = create({ waiting: { total: 100, reserve: 0, perClient: 100 } });
      const running = new Map<number, number>();
      let all = 0;
      const task = (key: number) => async () => {
        running.set(key, (running.get(key) ?? 0) + 1);
        assert.ok(running.get(key)! <= 2 && ++all <= 2);
        await Promise.resolve();
        running.set(key, running.get(key)! - 1);
        all--;
      };
      await Promise.all(keys.map((key) => slots.run(client(`${key}`), task(key))));
      assert.equal(slots.waiting, 0);
    }),
  );
});

test('a slot that is given back costs no look at each client that waits', async () => {
  const slots = create({
    running: { total: 1, reserve: 0, perClient: 1 },
    waiting: { total: 2_000, reserve: 0, perClient: 1 },
  });
  const held = await slots.take(client('a'));
  const leaving = new AbortController();
  let looks = 0;
  const served: string[] = [];
  const waiting = Array.from({ length: 2_000 }, async (_, index) => {
    const key = `198.51.${index >> 8}.${index & 255}`;
    const asking = {
      key,
      get isExempt() {
        looks++;
        return false;
      },
    };
    const slot = await slots.take(asking, leaving.signal);
    served.push(key);
    return slot;
  });
  looks = 0;
  held[Symbol.dispose]();
  await waiting[0];
  assert.ok(looks < 100, `${looks} looks`);
  assert.deepEqual(served, ['198.51.0.0']);
  leaving.abort();
  assert.equal((await Promise.allSettled(waiting)).length, 2_000);
});
