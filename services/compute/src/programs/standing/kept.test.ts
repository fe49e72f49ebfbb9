import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { CoreClient } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex } from '@skerry/protocol';
import { PROGRAM_LIMITS } from '../limits.ts';
import { callOf, TestPrograms } from '../testing/setup.ts';
import { listMounts } from '../volumes/images.ts';
import type { Attached } from '../volumes/volumes.ts';

/** Programs that are kept running, in real sandboxes. */

let room: TestPrograms;
before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  room = await TestPrograms.open({ idleMs: 1_000, memoryMib: 512 });
});
after(() => room[Symbol.asyncDispose]());

/** @returns what ends it */
function keep(hash: string, { programs } = room) {
  const stopping = new AbortController();
  const ended = programs.keep(hash, stopping.signal).then(
    () => 'ended',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  );
  return { stop: () => stopping.abort(), ended };
}

const ASGI = `
import asyncio
beats = 0

async def beat():
    global beats
    while True:
        beats += 1
        await asyncio.sleep(0.01)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        asyncio.get_running_loop().create_task(beat())
        await receive()
        return await send({"type": "lifespan.startup.complete"})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(beats).encode()})
`;
const NODE = 'let beats = 0; setInterval(() => beats++, 10); export default () => beats;';

for (const [runtime, code] of [
  ['python3', ASGI],
  ['nodejs', NODE],
] as const)
  test(`a program in ${runtime} goes on between calls, which go to it; it is stopped`, async () => {
    const hash = room.add(runtime, code);
    const { stop, ended } = keep(hash);
    const countOf = async () => Number((await room.outcomeOf(hash)).text);
    const first = await until('a first answer', countOf, (count) => count > 0);
    await until('more beats than calls', countOf, (count) => count > first + 100);
    const { start } = await room.run(hash);
    assert.deepEqual([start, room.programs.sandboxes], ['warm', 1]);
    stop();
    await ended;
    await until('nothing is left', () => room.programs.sandboxes === 0);
  });

test('one that ends or fails says so', async () => {
  assert.equal(await keep(room.add('python3', 'print(1)')).ended, 'ended');
  assert.equal(await keep(room.add('python3', 'raise ValueError("no")')).ended, 'PROGRAM_FAILED');
  assert.equal(
    await keep(room.add('nodejs', 'setTimeout(() => process.abort(), 50); export default () => 1')).ended,
    'ended',
  );
  assert.equal(await keep(room.add('wasm', 'AA==')).ended, 'PROGRAM_UNSUPPORTED');
});

test('what is kept leaves room for calls, and makes none', async () => {
  const kept = room.add('python3', `${ASGI}\n# kept`, { memoryMib: 256 });
  const { stop, ended } = keep(kept);
  await until('it answers', async () => (await room.outcomeOf(kept)).code === '200');
  assert.equal(await keep(room.add('python3', `${ASGI}\n# another`, { memoryMib: 256 })).ended, 'NO_RUNNER');
  for (let index = 0; index < 4; index++)
    assert.equal((await room.outcomeOf(room.add('nodejs', `export default () => ${index}`))).code, '200');
  assert.equal((await room.run(kept)).start, 'warm');
  stop();
  await ended;
});

test('one that writes without end is read so much a second, and is called all the same; its last words are read', async () => {
  const perSecond = PROGRAM_LIMITS.keptLogBytesPerSecond;
  const hash = room.add(
    'python3',
    `
import os, threading
written = 0
def write():
    global written
    while not isOver:
        written += os.write(1, b"\\n" * 65536)
    os.write(1, b"last words\\n")
    os._exit(3)
isOver = False
threading.Thread(target=write, daemon=True).start()
def main(variables):
    global isOver
    isOver = variables == "end"
    return written`,
  );
  const { ended } = keep(hash);
  const countOf = async () => Number((await room.outcomeOf(hash)).text);
  const first = await until('it writes', countOf, (count) => count > 0);
  const begunMs = performance.now();
  await until('it wrote for three seconds', countOf, (count) => count > first + 3 * perSecond);
  assert.ok(performance.now() - begunMs > 1_500);
  await room.outcomeOf(hash, 'end');
  await ended;
  assert.ok(room.programs.listLog(hash).some(({ text }) => text === 'last words'));
});

test('those that waited for room together are not kept beyond it', async () => {
  await using own = await TestPrograms.open({ spares: 0, memoryMib: 512 });
  const large = own.add(
    'nodejs',
    'export default () => { console.log("here"); return new Promise(() => {}); }',
    { memoryMib: 320 },
  );
  const ending = new AbortController();
  const call = own.programs.run(large, callOf(), 'test', ending.signal);
  await until('it runs', () => own.programs.listLog(large).length > 0);
  const hashes = ['one', 'two', 'three'].map((name) =>
    own.add('python3', `${ASGI}\n# ${name}`, { memoryMib: 128 }),
  );
  const keeping = hashes.map((hash) => keep(hash, own));
  const refused: string[] = [];
  for (const { ended } of keeping) void ended.then((how) => refused.push(how));
  // By then they wait in the line.
  await setImmediate();
  ending.abort(new AppError('PROGRAM_TIMED_OUT', 'over'));
  await assert.rejects(call, { code: 'PROGRAM_TIMED_OUT' });
  await until('one has no room', () => refused.length > 0);
  const kept = hashes.filter((hash) => own.programs.isKept(hash));
  assert.deepEqual([refused, kept.length], [['NO_RUNNER'], 2]);
  for (const { stop } of keeping) stop();
  await Promise.all(keeping.map(({ ended }) => ended));
});

test("who has more of what is kept than half gives way to another owner, and is told so; a share is nobody else's", async () => {
  await using own = await TestPrograms.open({ spares: 0, memoryMib: 512 });
  const addOf = (owner: string, memoryMib: number) =>
    own.add('python3', `${ASGI}\n# of ${owner}`, { owner, memoryMib });
  const greedy = addOf('0xgreedy', 320);
  const first = keep(greedy, own);
  await until('it answers', async () => (await own.outcomeOf(greedy)).code === '200');
  const modest = addOf('0xmodest', 128);
  const second = keep(modest, own);
  assert.equal(await Promise.race([first.ended, second.ended]), 'PROGRAM_CRASHED');
  await until('the other one answers', async () => (await own.outcomeOf(modest)).code === '200');
  assert.equal(await keep(greedy, own).ended, 'NO_RUNNER');
  assert.ok(own.programs.isKept(modest));
  second.stop();
  await second.ended;
});

test('nothing gives way to one that cannot have its volumes', async () => {
  await using own = await TestPrograms.open({ spares: 0, memoryMib: 512, volumesGib: 1 });
  await own.programs.volumes.clear();
  const greedy = own.add('python3', ASGI, { owner: '0xgreedy', memoryMib: 320 });
  const first = keep(greedy, own);
  await until('it answers', async () => (await own.outcomeOf(greedy)).code === '200');
  const volumes = (sizeMib: number) => [{ kind: 'own', mount: '/data', sizeMib, name: 'data' } as const];
  const modest = (sizeMib: number) =>
    own.add('python3', ASGI, { owner: '0xmodest', memoryMib: 128, volumes: volumes(sizeMib) });
  assert.equal(await keep(modest(2_048), own).ended, 'NO_RUNNER');
  assert.ok(own.programs.isKept(greedy));
  const fitting = modest(8);
  const second = keep(fitting, own);
  assert.equal(await Promise.race([first.ended, second.ended]), 'PROGRAM_CRASHED');
  await until('the other one answers', async () => (await own.outcomeOf(fitting)).code === '200');
  second.stop();
  await second.ended;
});

/** As on a disk that is slow, however quick the machine is: while another room has a call, and does all else that a stop does. */
async function slowly<T>(work: () => Promise<T>): Promise<T> {
  {
    await using other = await TestPrograms.open({ spares: 0, memoryMib: 512 });
    assert.equal((await other.outcomeOf(other.add('python3', 'def main(v):\n  return 1'))).code, '200');
  }
  return await work();
}

/** A room where volumes are attached and let go of as `change` has it. */
async function openWith(
  change: (attach: () => Promise<Attached>) => Promise<Attached>,
): Promise<TestPrograms> {
  const own = await TestPrograms.open({ spares: 0, memoryMib: 512, volumesGib: 1 });
  const { volumes: disk } = own.programs;
  await disk.clear();
  const prepare = disk.prepare.bind(disk);
  const changed: typeof prepare = async (asking) => {
    const prepared = await prepare(asking);
    return { ...prepared, attach: () => change(() => prepared.attach()) };
  };
  Object.assign(disk, { prepare: changed });
  return own;
}

const DATA = {
  memoryMib: 128,
  volumes: [{ kind: 'own', mount: '/data', sizeMib: 8, name: 'data' }],
} as const;

test('a node that stops waits for a program that is ending already, and its volumes are let go of', async () => {
  const own = await openWith(async (attach) => {
    const attached = await attach();
    return { ...attached, detach: () => slowly(() => attached.detach()) };
  });
  const hash = own.add('python3', ASGI, DATA);
  const { stop, ended } = keep(hash, own);
  await until('it answers', async () => (await own.outcomeOf(hash)).code === '200');
  assert.equal((await listMounts(own.directory)).length, 1);
  stop();
  // Removes the directory, too, which fails while anything is mounted in it.
  await own[Symbol.asyncDispose]();
  assert.deepEqual(await listMounts(own.directory), []);
  await ended;
});

test('a node that stops waits for volumes that are still being attached to a call, and lets go of them', async () => {
  const begun = Promise.withResolvers<void>();
  const told: string[] = [];
  const own = await openWith(async (attach) => {
    begun.resolve();
    const attached = await slowly(attach);
    told.push('attached');
    return attached;
  });
  const outcome = own.outcomeOf(own.add('python3', 'def main(v):\n  return 1', DATA));
  await begun.promise;
  await own[Symbol.asyncDispose]();
  told.push('stopped');
  assert.deepEqual(told, ['attached', 'stopped']);
  assert.deepEqual(await listMounts(own.directory), []);
  assert.equal((await outcome).code, 'SHUTTING_DOWN');
});

test('one that was called more often than a sandbox of other programs goes on', async (t) => {
  const hash = room.add('nodejs', 'let count = 0; export default () => ++count;');
  const { stop, ended } = keep(hash);
  await until('it is kept', () => room.programs.isKept(hash));
  const limits: { callsPerSandbox: number } = PROGRAM_LIMITS;
  const { callsPerSandbox } = limits;
  t.after(() => Object.assign(limits, { callsPerSandbox }));
  limits.callsPerSandbox = 1;
  for (const text of ['1', '2', '3']) assert.deepEqual(await room.outcomeOf(hash), { code: '200', text });
  stop();
  await ended;
});

test('what a program that runs on writes is found, though its code was let go of and read again', async () => {
  const code = 'let count = 0; export default () => { console.log("call", ++count); };';
  const hash = room.add('nodejs', code);
  const { stop, ended } = keep(hash);
  const isSaid = (text: string) => room.programs.listLog(hash).some((line) => line.text === text);
  await until('it is kept', () => room.programs.isKept(hash));
  await room.outcomeOf(hash);
  await until('it spoke', () => isSaid('call 1'));
  room.add('nodejs', code);
  assert.ok(isSaid('call 1'));
  await room.outcomeOf(hash);
  await until('it spoke again', () => isSaid('call 2'));
  stop();
  await ended;
});

test('one that is stopped while its volumes are fetched is not started', async () => {
  const [asked, given] = [Promise.withResolvers<void>(), Promise.withResolvers<Response>()];
  const core = {
    getFile() {
      asked.resolve();
      return given.promise;
    },
  };
  await using own = await TestPrograms.open({
    core: core as unknown as CoreClient,
    volumesGib: 4,
    spares: 0,
  });
  await own.programs.volumes.clear();
  const file = 'a file';
  const volumes = [{ kind: 'file', mount: '/opt/given', file: sha256Hex(file) }] as const;
  const hash = own.add('python3', 'print("here", flush=True)\nwhile True: pass', { volumes });
  const { stop, ended } = keep(hash, own);
  await asked.promise;
  stop();
  given.resolve(new Response(file));
  let outcome = '';
  void ended.then((how) => {
    outcome = how;
  });
  const seen = () =>
    outcome ||
    own.programs
      .listLog(hash)
      .map(({ text }) => text)
      .join();
  assert.equal(await until('it ends, or speaks', seen), 'ended');
});

test('a call that is ended by whoever made it ends with the reason', async () => {
  const ending = new AbortController();
  const hash = room.add(
    'nodejs',
    'export default () => { console.log("here"); return new Promise(() => {}); }',
  );
  const call = room.programs.run(hash, callOf(), 'test', ending.signal);
  await until('it runs', () => room.programs.listLog(hash).length > 0);
  ending.abort(new AppError('PROGRAM_TIMED_OUT', 'others are waiting'));
  await assert.rejects(call, { code: 'PROGRAM_TIMED_OUT', message: 'others are waiting' });
});

test('a call that is ended while it waits for its volumes or for a sandbox was not made, and is no run', async () => {
  const asked = Promise.withResolvers<void>();
  const core = {
    getFile() {
      asked.resolve();
      return new Promise(() => {});
    },
  };
  await using own = await TestPrograms.open({
    ...{ core: core as unknown as CoreClient, volumesGib: 4 },
    ...{ spares: 0, memoryMib: 128 },
  });
  await own.programs.volumes.clear();
  const outcomeOf = (hash: string, ending: AbortController) =>
    own.programs.run(hash, callOf(), 'test', ending.signal).then(
      () => 'answered',
      (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.message}` : String(error)),
    );
  const end = (ending: AbortController) => ending.abort(new AppError('PROGRAM_TIMED_OUT', 'others wait'));
  const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
  const volumes = [{ kind: 'file', mount: '/opt/given', file: sha256Hex('never') }] as const;
  const forVolumes = outcomeOf(own.add('python3', 'def main(variables): pass', { volumes }), first);
  await asked.promise;
  end(first);
  assert.equal(await forVolumes, 'OVERLOADED: others wait');

  const sleeper = own.add(
    'nodejs',
    'export default () => { console.log("here"); return new Promise(() => {}); }',
  );
  const running = outcomeOf(sleeper, second);
  await until('it runs', () => own.programs.listLog(sleeper).length > 0);
  const forSandbox = outcomeOf(own.add('nodejs', 'export default () => 1'), third);
  // By then it waits in the line.
  await setImmediate();
  end(third);
  assert.equal(await forSandbox, 'OVERLOADED: others wait');
  assert.deepEqual(own.runs, []);
  end(second);
  assert.equal(await running, 'PROGRAM_TIMED_OUT: others wait');
  assert.deepEqual(
    own.runs.map(({ outcome }) => outcome),
    ['timed_out'],
  );
});
