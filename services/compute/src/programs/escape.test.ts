import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, test } from 'node:test';
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
/** Until it shows that a program stands still between its calls. */
const STILL_MS = [600, 3_000, 15_000];

let room: TestPrograms;
let neighbour: string;
const server = createServer((socket) => socket.destroy());
let visitors = 0;
server.on('connection', () => visitors++);

before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  room = await TestPrograms.open();
  neighbour = room.add('nodejs', 'function main({ n }) { return n + 1; }', {
    timeoutSeconds: NEIGHBOUR_TIMEOUT_SECONDS,
  });
  await room.run(neighbour, { n: 1 });
  server.listen(0, '::');
  await once(server, 'listening');
});
after(async () => {
  server.close();
  await room[Symbol.asyncDispose]();
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

const addresses = Object.values(networkInterfaces())
  .flat()
  .flatMap((one) => (one && !one.address.startsWith('fe80') ? [one.address] : []));

describe('what a program may not use up', () => RESOURCE_ATTACKS.forEach(check));

describe('what a program cannot reach', () => {
  test('ports of the machine, on all of its addresses', async (t) => {
    const { port } = server.address() as { port: number };
    const targets = [...addresses, '127.0.0.1', '::1'].map((address) => [address, port] as const);
    for (const attack of networkAttacks(targets))
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
    const counter = room.add(
      'nodejs',
      'let ticks = 0; setInterval(() => { ticks++; }, 1); function main() { const seen = ticks; ticks = 0; return seen; }',
    );
    await room.run(counter);
    // It is stopped a moment after its answer, on a busy machine a longer one: of a longer wait that is less.
    const seen: string[] = [];
    for (const waitMs of STILL_MS) {
      await room.run(counter);
      await new Promise((done) => setTimeout(done, waitMs));
      const ticks = Number((await room.outcomeOf(counter)).text);
      if (ticks < waitMs / 3) return;
      seen.push(`${ticks} ms of ${waitMs}`);
    }
    assert.fail(`it went on for ${seen.join(', ')}`);
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
