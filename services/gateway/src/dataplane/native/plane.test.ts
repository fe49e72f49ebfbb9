import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { helloWire } from '../../tls/testing/hello.ts';
import type { DataPlaneOptions } from '../port.ts';
import {
  ADDRESS_A,
  ADDRESS_B,
  endingOf,
  NAME_A,
  NAME_B,
  openClient,
  openWorld,
  readAll,
  readBytes,
  until,
} from '../testing/suite/world.ts';
import { NATIVE, SANITIZER_FLAGS } from './build.ts';
import { NativeDataPlane, type NativePlaneOptions } from './plane.ts';
import { builtForTests } from './testing/built.ts';
import { checkLeaks } from './testing/leaks.ts';
import { runOwn } from './testing/run-own.ts';

const directory = await mkdtemp(join(tmpdir(), 'skerry-plane-'));
after(() => rm(directory, { recursive: true, force: true }));
const path = await builtForTests();

/** A network of its own, where the ports that connections are made from are few. */
const UNSHARE = ['--map-root-user', '--net'];
const hasOwnNetwork = spawnSync('unshare', [...UNSHARE, 'ip', 'link', 'set', 'lo', 'up']).status === 0;
const OWN_NETWORK = { skip: hasOwnNetwork ? false : 'no network namespace may be made' };

const HELLO = helloWire({ serverName: NAME_A });
const echo = (socket: Socket) => void socket.pipe(socket);
const troubles: string[] = [];
const recoveries: string[] = [];

function create(options: DataPlaneOptions, more: Partial<NativePlaneOptions> = {}): NativeDataPlane {
  return new NativeDataPlane({
    ...options,
    path,
    onTrouble: (_, message) => troubles.push(message),
    onRecovery: (message) => recoveries.push(message),
    ...more,
  });
}

async function speak(port: number): Promise<Socket> {
  const client = await openClient(port);
  client.write(HELLO);
  await readBytes(client, HELLO.length);
  return client;
}

describe('native data plane alone', () => {
  test('a program that falls is started again on the same port, with the routes of now', async () => {
    let plane: NativeDataPlane | undefined;
    await using world = await openWorld((options) => {
      plane = create(options);
      return plane;
    });
    world.tlsA.handle = echo;
    (await speak(world.ports.https)).destroy();
    process.kill(plane!.pid!, 'SIGKILL');
    plane!.applyChanges([{ hostname: 'new.example', ipv6: ADDRESS_A }]);
    await until(() => troubles.some((message) => message.includes('restarting it')));
    await until(() => recoveries.includes('the native data plane runs again'));
    await until(async () => {
      const client = connect(world.ports.https, '127.0.0.1').on('error', () => {});
      client.end(helloWire({ serverName: 'new.example' }));
      const answer = await readAll(client).catch(() => Buffer.alloc(0));
      return answer.length > 0;
    });
  });

  test('a program that finds its port taken as it starts again tries until it is free', async () => {
    const taken = join(directory, 'taken');
    const script = join(directory, 'plane.sh');
    await writeFile(
      script,
      `#!/bin/sh\n[ -e '${taken}' ] && exec '${path}' "$@" "port=$(cat '${taken}')"\nexec '${path}' "$@"\n`,
      { mode: 0o755 },
    );
    let plane: NativeDataPlane | undefined;
    await using world = await openWorld((options) => {
      plane = create(options, { path: script });
      return plane;
    });
    world.tlsA.handle = echo;
    await writeFile(taken, String(world.upstreamHttpPort));
    troubles.length = 0;
    process.kill(plane!.pid!, 'SIGKILL');
    await until(() => troubles.filter((message) => message.includes('did not start')).length === 2);
    await rm(taken);
    await until(async () => {
      const client = connect(world.ports.https, '127.0.0.1').on('error', () => {});
      client.end(HELLO);
      return (await readAll(client).catch(() => Buffer.alloc(0))).length > 0;
    });
  });

  test('a program that falls while no descriptor is left is started again once there are some', async () => {
    const script = new URL('./testing/out-of-descriptors.ts', import.meta.url).pathname;
    const node = `--disable-warning=ExperimentalWarning --import=${import.meta.resolve('@skerry/kit/resolve')}`;
    const command = `ulimit -n 100; exec '${process.execPath}' ${node} '${script}' '${path}'`;
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    assert.equal(
      stdout,
      `the native data plane ended: spawn ${path} EMFILE\nspawn true EMFILE\nit runs again\n`,
    );
  });

  test('a program without descriptors says so, blames no instance, and serves again when it has some', async () => {
    const script = join(directory, 'few.sh');
    await writeFile(script, `#!/bin/sh\nulimit -n 32\nexec '${path}' "$@"\n`, { mode: 0o755 });
    const said: string[] = [];
    const onTrouble = (details: object) => void said.push(String((details as { text?: string }).text));
    const few = (options: DataPlaneOptions) => create(options, { path: script, onTrouble });
    await using world = await openWorld(few, { helloTimeoutMs: 600_000 });
    world.tlsA.handle = echo;
    const { https } = world.ports;
    // Who never speaks takes one all the same; the last of them wait to be accepted.
    const crowd = await Promise.all(Array.from({ length: 60 }, () => openClient(https)));
    await until(() => said.some((text) => text.includes('no file descriptors are left')));
    crowd[0]!.write(HELLO);
    assert.equal(await endingOf(crowd[0]!), 'reset');
    assert.equal((await world.plane.stats()).tls.outcomes.connect_failed, 1);
    const { failedAt, failure } = (await world.plane.findAttempts(NAME_A))!;
    assert.deepEqual([failedAt, failure], [null, null]);
    for (const client of crowd) client.destroy();
    (await speak(https)).destroy();
  });

  test(
    'a plane without ports towards an instance says so, blames no instance, and plain HTTP does not, either',
    OWN_NETWORK,
    async () => {
      const script = new URL('./testing/out-of-ports.ts', import.meta.url).pathname;
      const node = `--disable-warning=ExperimentalWarning --import=${import.meta.resolve('@skerry/kit/resolve')}`;
      const command = `ip link set lo up; exec '${process.execPath}' ${node} '${script}' '${path}'`;
      const { stdout } = await promisify(execFile)('unshare', [...UNSHARE, 'sh', '-c', command]);
      const told = {
        served: 4,
        ending: 'reset',
        failed: 1,
        failure: null,
        answer: 'HTTP/1.1 503 Service Unavailable',
      };
      const said = 'no ports are left to connect to an instance from';
      assert.deepEqual(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
        [
          { plane: 'native', ...told, said },
          { plane: 'ts', ...told, said: '' },
        ],
      );
    },
  );

  test('a listener that could not be watched again is tried again', async () => {
    const { stdout } = await runOwn('scarce-watch', ['listen.c', 'scarcity.c']);
    assert.equal(stdout, 'waits, 0 watched\nlistens, 1 watched\n');
  });

  test('whoever comes and goes, a client that has most makes room for one that has none, and a network where no client has several', async () => {
    const { stdout } = await runOwn('client-places', ['clients.c', 'memory.c'], SANITIZER_FLAGS);
    assert.equal(stdout, '0 bytes left\n');
  });

  /** @returns what it says of reports that nobody reads */
  const reportTo = async (reader: 'unread' | 'closed') => {
    const names = (await readdir(NATIVE)).filter((name) => name.endsWith('.c') && name !== 'main.c');
    return (await runOwn('unread-reports', names, [], reader)).stderr;
  };

  test('what nobody reads takes nothing else with it, neither lines of the access log nor answers', async () => {
    assert.equal(await reportTo('unread'), 'some lines, handed over 1\n');
  });

  test('the last words for a reader that left are not tried for ever', async () => {
    assert.equal(await reportTo('closed'), 'finished\n');
  });

  test('a change while it is told the whole table counts', async () => {
    let options: DataPlaneOptions | undefined;
    await using world = await openWorld((given) => {
      options = given;
      return create(given);
    });
    world.tlsA.handle = echo;
    await using plane = create({ ...options!, httpPort: 0, httpsPort: 0 });
    // More than a pipe holds, and what changes comes last.
    const others = Array.from({ length: 20_000 }, (_, i) => ({ hostname: `n${i}.example`, ipv6: ADDRESS_B }));
    plane.replaceTable([...others, { hostname: NAME_A, ipv6: ADDRESS_B }]);
    const listening = plane.listen();
    while (plane.pid === undefined) await new Promise((resolve) => setImmediate(resolve));
    plane.applyChanges([{ hostname: NAME_A, ipv6: ADDRESS_A }]);
    const client = await openClient((await listening).https);
    client.end(HELLO);
    assert.deepEqual(await readAll(client).catch(() => undefined), Buffer.from(HELLO));
  });

  test('a gateway that replaces another drops nothing; one that was not asked to does not', async () => {
    const handoverPath = join(directory, 'listeners.sock');
    let replaced = 0;
    const handover = { path: handoverPath, replace: false, drainMs: 600_000, onReplaced: () => replaced++ };
    let first: NativeDataPlane | undefined;
    let again: DataPlaneOptions | undefined;
    await using world = await openWorld((options) => {
      again = options;
      first = create(options, { handover });
      return first;
    });
    world.tlsA.handle = echo;
    world.tlsB.handle = echo;
    const { http: httpPort, https: httpsPort } = world.ports;
    const onSamePorts = { ...again!, httpPort, httpsPort };
    await assert.rejects(create(onSamePorts, { handover }).listen(), { code: 'EADDRINUSE' });
    const old = await Promise.all(Array.from({ length: 50 }, () => speak(httpsPort)));
    const firstPid = first!.pid!;

    // New connections all the while, each with its own data.
    let going = true;
    let served = 0;
    const visitor = async () => {
      while (going) {
        const client = await openClient(httpsPort);
        const data = Buffer.concat([HELLO, randomBytes(5000)]);
        client.end(data);
        assert.ok((await readAll(client)).equals(data));
        served++;
      }
    };
    const visitors = Array.from({ length: 8 }, visitor);
    await until(() => served > 100);
    await using second = create(onSamePorts, { handover: { ...handover, replace: true } });
    second.replaceTable([{ hostname: NAME_A, ipv6: ADDRESS_A }]);
    await second.listen();
    await until(() => replaced === 1);
    await first!.close();
    const atHandover = served;
    await until(() => served > atHandover + 100);
    going = false;
    await Promise.all(visitors);
    for (const client of old) {
      client.end('still here');
      assert.equal(String(await readAll(client)), 'still here');
    }
    // What it still had is done: it ends by itself.
    await until(() => !isAlive(firstPid));
  });

  test('crowds that never speak, die in the middle, meet a reader that stops or nobody leave nothing behind', async () => {
    const said: string[] = [];
    const counts = { silent: 1000, dying: 1000, unread: 50, refused: 500 };
    await checkLeaks(path, counts, (line) => said.push(line));
    assert.equal(said.length, 6);
  });

  test('idle connections take at most 200 bytes each', async () => {
    let plane: NativeDataPlane | undefined;
    await using world = await openWorld((options) => {
      plane = create(options);
      return plane;
    });
    world.tlsA.handle = echo;
    const count = 2000;
    // Counted by the program: resident pages tell of bursts, of huge pages and of the rounding in the kernel as well.
    const clients: Socket[] = [];
    // No more at once than wait for a server that is busy.
    while (clients.length < count)
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => speak(world.ports.https)))));
    assert.ok(plane!.connectionBytes > 0);
    // What it takes while it forwards is given back a moment after the client has its answer.
    await until(() => plane!.connectionBytes <= 200 * count);
    for (const client of clients) client.destroy();
  });

  test('thousands of transfers and of route changes at the same time: every byte arrives', async () => {
    await using world = await openWorld((options) => create(options));
    world.tlsA.handle = echo;
    world.tlsB.handle = echo;
    const data = randomBytes(300_000);
    const digest = createHash('sha256').update(HELLO).update(data).digest('hex');
    let done = 0;
    const transfer = async () => {
      const client = await openClient(world.ports.https);
      client.write(HELLO);
      client.end(data);
      const back = await readAll(client);
      assert.equal(createHash('sha256').update(back).digest('hex'), digest);
      done++;
    };
    const transfers = Promise.all(Array.from({ length: 200 }, transfer));
    let changes = 0;
    while (done < 200 && changes < 10_000) {
      for (let i = 0; i < 100; i++, changes++)
        world.plane.applyChanges([
          { hostname: `n${changes % 700}.example`, ipv6: changes % 3 ? ADDRESS_B : null },
        ]);
      world.plane.applyChanges([{ hostname: NAME_B, ipv6: changes % 200 ? ADDRESS_A : null }]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await transfers;
    assert.equal(done, 200);
  });
});

function isAlive(pid: number): boolean {
  try {
    // A process that ended and was not waited for counts as ended.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
