import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createClientOf, createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import fc from 'fast-check';
import { until } from '../testing/wait.ts';
import { chooseToEnd, chooseToRefuse, type Held, orderWaiters, RecentUse } from './fair-shares.ts';
import { addProgramRoutes } from './routes.ts';
import { TestPrograms } from './testing/setup.ts';

/** Only what hangs takes as long. */
const HANG_MS = 100_000;
const MEMORY_MIB = 480;
/** With its runtime it takes almost all that programs have here. */
const GREEDY = { memoryMib: 400, timeoutSeconds: 3_600 };
const SLEEPER = 'import time\ndef main(v):\n  time.sleep(v.get("for", 3600))\n  return "slept"';

/** What a test leaves idle is gone soon after: sandboxes are counted. */
const SOON = { idleMs: 200, contendedMs: 1_000 };
const programs = await TestPrograms.open({ memoryMib: MEMORY_MIB, spares: 0, ...SOON });
after(() => programs[Symbol.asyncDispose]());

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: { code?: string }) => error.code,
  );

test("M7: a stranger's sleeper does not keep another owner's program from running", async () => {
  const sleeper = programs.add('python3', SLEEPER, GREEDY);
  const other = programs.add('python3', 'def main(v):\n  return "here"');
  const strangers = codeOf(programs.run(sleeper, {}, {}, 'stranger'));
  await until('the sleeper has its sandbox', HANG_MS, () => programs.programs.sandboxes > 0, 10);
  const { result } = await programs.run(other, {}, {}, 'owner');
  assert.equal(result.kind === 'answer' && result.body.toString(), 'here');
  assert.equal(await strangers, 'PROGRAM_TIMED_OUT');
});

test("M7: a caller who holds every sandbox of somebody's program lets the next caller in", async () => {
  const program = programs.add('python3', SLEEPER, { memoryMib: 32, timeoutSeconds: 3_600 });
  const strangers = [1, 2, 3, 4, 5, 6].map(() => codeOf(programs.run(program, {}, {}, 'stranger')));
  await until('the strangers have all sandboxes', HANG_MS, () => programs.programs.sandboxes === 4, 10);
  const { result } = await programs.run(program, { for: 0 }, {}, 'owner');
  assert.equal(result.kind === 'answer' && result.body.toString(), 'slept');
  assert.equal(await Promise.race(strangers), 'PROGRAM_TIMED_OUT');
  // Whoever is left ends with the room.
  void Promise.all(strangers);
});

test('a sandbox that nobody calls makes room, however the clock was set meanwhile', async (t) => {
  await using own = await TestPrograms.open({ memoryMib: MEMORY_MIB, spares: 0, idleMs: 50 });
  await own.run(own.add('python3', 'def main(v):\n  return 1'), {}, {}, 'owner');
  const { now } = Date;
  t.mock.method(Date, 'now', () => now() - 86_400_000);
  await until('it has ended', HANG_MS, () => own.programs.sandboxes === 0, 10);
});

test('M7: who takes most of the memory gives way sooner; who takes little has the whole time', () => {
  const endedAt = (memoryMib: number, sandboxesPerProgram = 4) => {
    const held = [{ client: 'a', key: 'p', memoryMib, sinceMs: 0 }];
    const waiters = ['b', 'c', 'd', 'e'].map((client) => ({ client, key: 'q' }));
    const rules = { memoryMib: 1_000, contendedMs: 10_000, sandboxesPerProgram };
    const isEnded = (nowMs: number) => chooseToEnd(held, waiters, rules, nowMs) !== undefined;
    return [2_500, 5_000, 10_000].find(isEnded);
  };
  assert.deepEqual(
    [200, 201, 250, 500, 1_000].map((mib) => endedAt(mib)),
    [undefined, 10_000, 10_000, 5_000, 2_500],
  );
});

test('M7: where all is taken and somebody waits, somebody has more than a share; nobody within a share is ended', () => {
  const call = fc.record({
    client: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    key: fc.constantFrom('p', 'q', 'r'),
    memoryMib: fc.integer({ min: 32, max: 900 }),
    sinceMs: fc.integer({ min: 0, max: 100 }),
  });
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 12 }), (held: Held[]) => {
      const memoryMib = held.reduce((sum, one) => sum + one.memoryMib, 0);
      const rules = { memoryMib, contendedMs: 10, sandboxesPerProgram: 64 };
      const waiter = { client: 'newcomer', key: 'new' };
      const ended = chooseToEnd(held, [waiter], rules, 1_000);
      assert.ok(ended);
      const own = held.filter(({ client }) => client === ended.client);
      const clients = new Set(held.map(({ client }) => client)).size + 1;
      assert.ok(own.reduce((sum, one) => sum + one.memoryMib, 0) > memoryMib / clients);
      assert.equal(chooseToEnd(held, [waiter], rules, 2), undefined, 'not before its time');
      assert.equal(chooseToEnd(held, [], rules, 1_000), undefined, 'nobody waits');
    }),
  );
});

test('M7: who holds least is served first, and a line that is full lets go of whoever fills it', () => {
  const held = [{ client: 'a', key: 'p', memoryMib: 100, sinceMs: 0 }];
  const line = [
    { client: 'a', key: 'p' },
    { client: 'b', key: 'q' },
    { client: 'a', key: 'r' },
  ];
  assert.deepEqual(
    orderWaiters(line, held).map(({ key }) => key),
    ['q', 'p', 'r'],
  );
  assert.deepEqual(chooseToRefuse(line, 'c'), line[2]);
  assert.equal(chooseToRefuse(line, 'a'), undefined);
  assert.equal(chooseToRefuse([], 'a'), undefined);
});

test('M7: who kept the node busy of late waits behind who did not, however many calls it has in the line', () => {
  const recent = new RecentUse();
  recent.note({ client: 'busy', key: 'p', memoryMib: 950, sinceMs: 0 }, 10_000);
  recent.note({ client: 'modest', key: 'q', memoryMib: 150, sinceMs: 9_000 }, 10_000);
  const line = ['busy', 'busy', 'modest', 'new'].map((client) => ({ client, key: 'p' }));
  const order = (nowMs: number) =>
    orderWaiters(line, [], ({ client }) => recent.of(client, nowMs)).map(({ client }) => client);
  assert.deepEqual(order(20_000), ['new', 'modest', 'busy', 'busy']);
  assert.ok(recent.of('busy', 70_000) <= recent.of('busy', 10_000) / 2, 'what was long ago counts less');
});

async function openServer(exempt: string[]): Promise<{ app: HttpServer; url: string }> {
  // A proxy of ours says who asks: one machine can stand for many clients.
  const clients = { trustedProxies: ['127.0.0.1'], exempt };
  const app = await createHttpServer({
    log: createLogger('test', 'silent'),
    limits: {
      ...clients,
      isEnabled: true,
      perMinute: { general: 100, authenticated: 300, heavy: 10 },
      now: () => 0,
    },
  });
  const diagnostic = programs.add('python3', 'def main(v):\n  return "well"');
  addProgramRoutes(app, programs.programs, createClientOf(clients), [diagnostic]);
  return { app, url: `${await listen(app, '127.0.0.1', 0)}/vm/${diagnostic}` };
}

test('M7: calls of programs are limited at the node as at a core node; what monitors measure is not, nor services of the network', async () => {
  const { app, url } = await openServer(['192.0.2.9']);
  const hash = programs.add('python3', 'def main(v):\n  return 1');
  const ask = async (target: string, client: string, method = 'POST') =>
    (await fetch(target, { method, headers: { 'x-forwarded-for': client } })).status;
  const direct = url.replace(/\/vm\/.*/, '');
  for (let round = 0; round < 10; round++)
    assert.equal(await ask(`${direct}/${round % 2 ? 'run' : 'vm'}/${hash}`, '192.0.2.1'), 200);
  assert.equal(await ask(`${direct}/run/${hash}`, '192.0.2.1'), 429);
  assert.equal(await ask(`${direct}/vm/${hash}/x`, '192.0.2.1', 'GET'), 429);
  assert.equal(await ask(`${direct}/vm/${hash}`, '192.0.2.2'), 200, 'another client');
  assert.equal(await ask(url, '192.0.2.1', 'GET'), 200, 'the diagnostic program');
  for (let round = 0; round < 15; round++)
    assert.equal(await ask(`${direct}/run/${hash}`, '192.0.2.9'), 200, 'a core node of this network');
  await app.close();
});

test('Low: what the kernel tells of the machine, and how the sandbox was started, is not read inside', async () => {
  const hash = programs.add(
    'python3',
    `def main(v):
  seen = {}
  for path in v["paths"]:
    try: seen[path] = open(path, "rb").read().replace(b"\\0", b" ").decode()
    except OSError as error: seen[path] = type(error).__name__
  return seen`,
  );
  const paths = ['interrupts', 'diskstats', 'config.gz', 'cmdline', 'sys/kernel/random/boot_id', '1/cmdline'];
  const { result } = await programs.run(hash, { paths: paths.map((path) => `/proc/${path}`) });
  assert.ok(result.kind === 'answer');
  const seen = JSON.parse(result.body.toString()) as Record<string, string>;
  assert.match(seen['/proc/1/cmdline']!, /^bwrap --args 8 -- \/usr\/bin\/setpriv .*\/skerry\/python.py $/);
  delete seen['/proc/1/cmdline'];
  for (const [path, said] of Object.entries(seen))
    assert.match(said, /^(PermissionError|FileNotFoundError)$/, path);
});
