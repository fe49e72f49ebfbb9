import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../testing/until.ts';
import { unixAddress, useHelper } from './notify-socket.ts';
import { watchdogMs } from './service-manager.ts';

/** What a service manager gets: each datagram, and the process that the kernel says it is from. */
const LISTENER = `
import json, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1].replace('@', chr(0), 1) if sys.argv[1].startswith('@') else sys.argv[1])
print(json.dumps(None), flush=True)
while True:
    text, ancillary, _, _ = s.recvmsg(4096, 256)
    print(json.dumps([struct.unpack('iII', ancillary[0][2])[0], text.decode()]), flush=True)
`;
const SERVICE = fileURLToPath(new URL('../testing/service.ts', import.meta.url));

type Notice = readonly [pid: number, text: string];

async function listen(t: TestContext, path: string): Promise<Notice[]> {
  const listener = spawn('python3', ['-c', LISTENER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => listener.kill('SIGKILL'));
  const notices: Notice[] = [];
  const lines = createInterface(listener.stdout);
  lines.on('line', (line) => line !== 'null' && notices.push(JSON.parse(line)));
  await once(lines, 'line');
  return notices;
}

async function directory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'skerry-notify-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

function start(
  t: TestContext,
  how: string,
  socket: string,
  args: string[] = [],
): { child: ChildProcess; exited: Promise<number | null>; output: () => string } {
  const child = spawn(process.execPath, [...args, SERVICE], {
    env: {
      ...process.env,
      ...{ TEST_START: how, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '40000', WATCHDOG_PID: '1' },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout!.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  return { child, exited: once(child, 'exit').then(([code]) => code as number | null), output: () => output };
}

const textsOf = (notices: readonly Notice[]) => notices.map(([, text]) => text);

for (const [kind, nameOf] of [
  ['a path', (path: string) => path],
  ['an abstract name', (path: string) => `@${path}`],
] as const)
  test(`a service manager at ${kind} hears of the start, of life and of the stop, from the process itself`, async (t) => {
    const socket = nameOf(join(await directory(t), 'notify'));
    const notices = await listen(t, socket);
    const { child, exited } = start(t, 'serves', socket);
    await until('signs of life', () => textsOf(notices).filter((text) => text === 'WATCHDOG=1').length > 2);
    assert.ok(textsOf(notices).includes(`MAINPID=${child.pid}\nREADY=1\nSTATUS=http://127.0.0.1`));
    child.kill('SIGTERM');
    assert.equal(await exited, 0);
    await until('the stop', () => textsOf(notices).includes('STOPPING=1\nSTATUS=stopping'));
    assert.deepEqual([...new Set(notices.map(([pid]) => pid))], [child.pid]);
  });

test('a long step of the start asks for time; one that fails says why', async (t) => {
  const socket = join(await directory(t), 'notify');
  const notices = await listen(t, socket);
  const { exited } = start(t, 'fails after long', socket);
  assert.equal(await exited, 1);
  await until('the reason', () => textsOf(notices).includes('STATUS=failed to start: its database is away'));
  assert.ok(textsOf(notices).includes('STATUS=opening\nEXTEND_TIMEOUT_USEC=120000000'));
});

test('settings that cannot be read are the reason, too', async (t) => {
  const socket = join(await directory(t), 'notify');
  const notices = await listen(t, socket);
  const child = spawn(process.execPath, [SERVICE], {
    env: { ...process.env, TEST_START: 'serves', NOTIFY_SOCKET: socket, SKERRY_LOG_LEVEL: 'loud' },
    stdio: 'ignore',
  });
  t.after(() => child.kill('SIGKILL'));
  const [code] = await once(child, 'exit');
  assert.notEqual(code, 0);
  await until('the reason', () =>
    textsOf(notices).some((text) =>
      /^STATUS=failed to start: SKERRY_LOG_LEVEL must be one of .*, not "loud"$/.test(text),
    ),
  );
});

test('programs that the service runs do not have the variables', async (t) => {
  const socket = join(await directory(t), 'notify');
  await listen(t, socket);
  const { child, output } = start(t, 'runs a program', socket);
  await until('its output', () => output().includes('SHELL ['));
  assert.match(output(), /SHELL \[ {2}\]/);
  child.kill('SIGTERM');
});

test('a process that is replaced says no stop, and stays until its successor is the main one', async (t) => {
  const socket = join(await directory(t), 'notify');
  const notices = await listen(t, socket);
  const { child, exited, output } = start(t, 'is replaced', socket);
  await until('its end', () => output().includes('let go'));
  const before = notices.length;
  await until('more signs of life', () => notices.length > before + 2);
  assert.equal(child.exitCode, null);
  child.kill('SIGTERM');
  assert.equal(await exited, 0);
  assert.ok(!textsOf(notices).some((text) => text.includes('STOPPING')));
});

test('without node:ffi the program systemd-notify speaks', async (t) => {
  const socket = join(await directory(t), 'notify');
  const notices = await listen(t, socket);
  assert.equal(await useHelper(socket)('READY=1\nSTATUS=two words'), true);
  await until('what it said', () => textsOf(notices).includes('READY=1\nSTATUS=two words'));
  const { exited } = start(t, 'fails after long', socket, ['--no-experimental-ffi']);
  assert.equal(await exited, 1);
  await until('the reason', () => textsOf(notices).includes('STATUS=failed to start: its database is away'));
});

test('addresses and times', () => {
  assert.deepEqual([...unixAddress('/a')], [1, 0, 0x2f, 0x61, 0]);
  assert.deepEqual([...unixAddress('@a')], [1, 0, 0, 0x61]);
  assert.throws(() => unixAddress('/'.padEnd(200, 'a')));
  assert.deepEqual(['120000000', undefined, '0', 'x', '-5'].map(watchdogMs), [
    60_000,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
