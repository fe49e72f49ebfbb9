import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { findTrees } from '../groups/trees.ts';
import { until } from '../testing/wait.ts';
import { type Attack, machineAttacks, networkAttacks, RESOURCE_ATTACKS } from './testing/attacks.ts';
import { TestPrograms } from './testing/setup.ts';

/**
 * What strangers' programs may try, each against a real sandbox on a machine where something listens on every address.
 * The outcomes are printed. A neighbour is called all the while: it must not notice.
 */

/** The neighbour is ended where an answer takes longer; it never does while it gets its share of the machine. */
const NEIGHBOUR_TIMEOUT_SECONDS = 30;
const NEIGHBOUR_PAUSE_MS = 50;
const LINE_CHARS = 110;
/** Only what hangs takes as long. */
const HANG_MS = 100_000;
/**
 * So long a program is watched between its calls, and so much of the processor it may have meanwhile, in milliseconds. Where groups
 * cannot be frozen (version 1) it keeps a thousandth, given as the kernel's clock ticks.
 */
const WATCH_MS = 2_000;
const STILL_MS = { 1: 40, 2: 0 };

let room: TestPrograms;
let neighbour: string;
let directory: string;
let visitors = 0;
/** What a program of the machine listens on: every address, a file, and a name of Linux's alone. */
const servers = Array.from({ length: 3 }, () =>
  createServer((socket) => socket.destroy()).on('connection', () => visitors++),
);
const [server] = servers as [Server];
const SOCKET_NAME = `skerry-escape-${process.pid}`;
const socketPath = () => join(directory, 'socket');

before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  room = await TestPrograms.open();
  neighbour = room.add('nodejs', 'function main({ n }) { return n + 1; }', {
    timeoutSeconds: NEIGHBOUR_TIMEOUT_SECONDS,
  });
  await room.run(neighbour, { n: 1 });
  directory = await mkdtemp(join(tmpdir(), 'skerry-escape-'));
  const places = [{ port: 0, host: '::' }, { path: socketPath() }, { path: `\0${SOCKET_NAME}` }];
  for (const [index, place] of places.entries()) await once(servers[index]!.listen(place), 'listening');
});
after(async () => {
  for (const one of servers) one.close();
  await room[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** How often the neighbour was answered while something else went on, and how long it waited at most. */
async function watchNeighbour(until: Promise<unknown>): Promise<{ answers: number; slowestMs: number }> {
  let isOver = false;
  const over = until.finally(() => {
    isOver = true;
  });
  let answers = 0;
  let slowestMs = 0;
  for (let n = 0; !isOver; n++) {
    const startedMs = performance.now();
    assert.equal((await room.outcomeOf(neighbour, { n })).text, String(n + 1));
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    if (!isOver) answers++;
    await Promise.race([over.catch(() => {}), new Promise((done) => setTimeout(done, NEIGHBOUR_PAUSE_MS))]);
  }
  return { answers, slowestMs };
}

function check(attack: Attack): void {
  const { name, runtime, code, expected, says, ...options } = attack;
  test(`${runtime}: ${name}`, async (t) => {
    const hash = room.add(runtime, code, options);
    const attempt = room.outcomeOf(hash);
    const [outcome, { answers, slowestMs }] = await Promise.all([attempt, watchNeighbour(attempt)]);
    const line = outcome.text.trim().split('\n').at(-1)!.slice(0, LINE_CHARS);
    t.diagnostic(
      `${outcome.code}: ${line} (neighbour: ${answers} answers, ${slowestMs.toFixed(0)} ms at most)`,
    );
    assert.ok([expected].flat().includes(outcome.code), `${outcome.code}: ${outcome.text}`);
    assert.match(outcome.text, says);
    // What is ended by its time limit went on for long enough.
    if (outcome.code === 'PROGRAM_TIMED_OUT') assert.ok(answers > 0, 'the neighbour had to wait for it');
  });
}

/** Of all that is in a control group, so far (sched/schedstat, in nanoseconds). */
function processorMsOf(group: string): number {
  let nanoseconds = 0;
  for (const pid of readFileSync(join(group, 'cgroup.procs'), 'utf8').match(/\d+/g) ?? [])
    for (const task of readdirSync(`/proc/${pid}/task`))
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  return nanoseconds / 1e6;
}

const addresses = Object.values(networkInterfaces())
  .flat()
  .flatMap((one) => (one && !one.address.startsWith('fe80') ? [one.address] : []));

describe('what a program may not use up', () => RESOURCE_ATTACKS.forEach(check));

describe('what a program cannot reach', () => {
  test('ports of the machine, on all of its addresses', async (t) => {
    const { port } = server.address() as { port: number };
    const targets = [...addresses, '127.0.0.1', '::1'].map((address) => [address, port] as const);
    // The test itself gets through everywhere.
    const open = [{ port, host: '127.0.0.1' }, { path: socketPath() }, { path: `\0${SOCKET_NAME}` }];
    for (const place of open) await once(connect(place).resume(), 'close');
    assert.equal(visitors, open.length);
    visitors = 0;
    for (const attack of networkAttacks(targets, { path: socketPath(), name: SOCKET_NAME }))
      await t.test(attack.name, async (own) => {
        const outcome = await room.outcomeOf(room.add(attack.runtime, attack.code));
        own.diagnostic(`${outcome.code}: ${outcome.text.slice(0, LINE_CHARS)}`);
        assert.ok([attack.expected].flat().includes(outcome.code), `${outcome.code}: ${outcome.text}`);
        assert.match(outcome.text, attack.says);
      });
    assert.equal(visitors, 0, 'something came through');
  });

  machineAttacks([
    '/etc/shadow',
    '/etc/passwd',
    '/root',
    '/home',
    '/var',
    '/sys',
    '/run',
    '/boot',
    '/bin/sh',
    '/usr/bin/bwrap',
    process.cwd(),
    import.meta.filename,
  ]).forEach(check);
});

describe('what programs cannot do to each other', () => {
  test('no file of one is there for another, nor for the next run of a script', async () => {
    const writer = room.add('python3', "open('/tmp/mine', 'w').write('secret')\nprint('written')");
    const reader = room.add('python3', "import os\nprint(os.listdir('/tmp') + os.listdir('/dev/shm'))");
    assert.match((await room.outcomeOf(writer)).text, /written/);
    assert.equal((await room.outcomeOf(reader)).text.trim(), '[]');
  });

  test('no port of one is there for another', async () => {
    const listener = room.add(
      'nodejs',
      `let server; const open = new Promise((done) => { server = require('node:net').createServer().listen(7777, '0.0.0.0', done); });
       async function main() { await open; return 'listening'; }`,
    );
    assert.equal((await room.outcomeOf(listener)).text, 'listening');
    const visitor = room.add(
      'nodejs',
      `function main() { return new Promise((done) => { const s = require('node:net').connect(7777, '127.0.0.1'); s.on('connect', () => done('reached')); s.on('error', (e) => done(e.code)); }); }`,
    );
    assert.equal((await room.outcomeOf(visitor)).text, 'ECONNREFUSED');
  });

  test('between calls a program stands still', async () => {
    await using own = await TestPrograms.open({ spares: 0 });
    const busy = own.add(
      'nodejs',
      'let turns = 0; const turn = () => { turns++; setImmediate(turn); }; turn(); function main() { return turns; }',
    );
    await own.run(busy);
    const home = own.groupHomes[0]!;
    const [group = ''] = readdirSync(home).filter((name) => /^[0-9a-f]{8}-/.test(name));
    // It is stopped a moment after its answer, on a busy machine a longer one.
    const seen: number[] = [];
    const isStill = async () => {
      const beforeMs = processorMsOf(join(home, group));
      await delay(WATCH_MS);
      seen.push(processorMsOf(join(home, group)) - beforeMs);
      return seen.at(-1)! <= STILL_MS[findTrees()!.version];
    };
    await until('it stands still', HANG_MS, isStill).catch((error) => assert.fail(`${error}: ${seen} ms`));
    assert.equal((await own.outcomeOf(busy)).code, '200', 'it goes on when it is called');
  });

  test('nothing of a program is left when it was ended', async () => {
    const fleeing = room.add(
      'python3',
      `import os, time
def main(variables):
  for _ in range(20):
    if os.fork() == 0:
      os.setsid()
      while True: time.sleep(1)
  os._exit(1)`,
    );
    assert.equal((await room.outcomeOf(fleeing)).code, 'PROGRAM_CRASHED');
    assert.equal((await room.outcomeOf(neighbour, { n: 1 })).text, '2');
  });
});
