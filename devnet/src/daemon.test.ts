import assert from 'node:assert/strict';
import { openSync } from 'node:fs';
import { devNull } from 'node:os';
import { test } from 'node:test';
import { type DaemonEvent, type DaemonOptions, superviseDaemon } from './daemon.ts';
import { isAlive, QUICK_LIMITS, TEST_DAEMON, until } from './testing/network.ts';

const lockFd = openSync(devNull, 'r');

function supervise(behaviour: string | undefined, options: Partial<DaemonOptions> = {}) {
  const events: DaemonEvent[] = [];
  const lines: string[] = [];
  const seenUrls: (readonly string[] | undefined)[] = [];
  const daemon = superviseDaemon({
    name: 'core',
    lockFd,
    command: (urls) => {
      seenUrls.push(urls);
      const environment = { TEST_BEHAVIOUR: JSON.stringify({ core: behaviour }), SKERRY_CORE_PORT: '0' };
      return { file: process.execPath, args: [TEST_DAEMON, 'core'], environment };
    },
    onLine: (line) => lines.push(line),
    onEvent: (event) => events.push(event),
    limits: QUICK_LIMITS,
    ...options,
  });
  return { daemon, events, lines, seenUrls };
}

test('is ready with its urls, and stops on request', async () => {
  const { daemon, events, lines } = supervise(undefined);
  const [url] = await daemon.ready;
  assert.equal((await fetch(url!)).status, 200);
  const pid = daemon.pid!;
  await daemon.stop();
  assert.ok(!isAlive(pid));
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['ready'],
  );
  await until('its last line', () => lines.some((line) => line.includes('stops: SIGTERM')));
});

test('a process that is killed is started again, told where it served', async () => {
  const { daemon, events, seenUrls } = supervise(undefined);
  const urls = await daemon.ready;
  const pid = daemon.pid!;
  process.kill(pid, 'SIGKILL');
  await until('a second readiness', () => events.filter(({ kind }) => kind === 'ready').length === 2);
  assert.notEqual(daemon.pid, pid);
  assert.deepEqual(seenUrls, [undefined, urls]);
  const ended = events.find((event) => event.kind === 'ended');
  assert.equal(ended?.signal, 'SIGKILL');
  await daemon.stop();
});

test('one that cannot start is waited for only a few tries, and its words are passed on', async () => {
  const { daemon, events, lines } = supervise('crash');
  await assert.rejects(daemon.ready, {
    code: 'DAEMON_FAILED',
    message: 'cannot start core: it exited 3 times in a row; its last output: no good',
  });
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['ended', 'ended', 'ended', 'failing'],
  );
  assert.ok(lines.includes('no good'));
  await daemon.stop();
});

test('a wrong setting is given up at once', async () => {
  const { daemon, events } = supervise('wrong-setting');
  await assert.rejects(daemon.ready, {
    code: 'INVALID_CONFIG',
    message: 'cannot start core: SKERRY_A: too much; SKERRY_B: too little',
  });
  assert.deepEqual(events, [{ kind: 'given-up', why: 'SKERRY_A: too much; SKERRY_B: too little' }]);
});

test('a program that does not exist fails like one that ends', async () => {
  const command = () => ({ file: '/nonexistent/program', args: [], environment: {} });
  const { daemon, lines } = supervise(undefined, { command });
  await assert.rejects(daemon.ready, { code: 'DAEMON_FAILED' });
  assert.match(lines[0]!, /cannot run/);
  await daemon.stop();
});

test('one that does not stop in time is killed', async () => {
  const { daemon } = supervise('stubborn', { stopDeadlineMs: 50 });
  await daemon.ready;
  const pid = daemon.pid!;
  await daemon.stop();
  assert.ok(!isAlive(pid));
});

test('stopping between two lives ends it for good', async () => {
  const limits = { ...QUICK_LIMITS, baseMs: 60_000, maxMs: 60_000 };
  const { daemon, events, seenUrls } = supervise(undefined, { limits });
  await daemon.ready;
  process.kill(daemon.pid!, 'SIGKILL');
  await until('its end', () => events.some(({ kind }) => kind === 'ended'));
  await daemon.stop();
  assert.equal(seenUrls.length, 1);
  assert.equal(daemon.pid, undefined);
});

test('one that has settings to hear begins when it is told to, also after an end before that', async () => {
  const { daemon, events, seenUrls } = supervise(undefined, {
    settings: (urls) => ({ SKERRY_CORE_TOLD: String(urls?.length ?? 'first'), SKERRY_CORE_PORT: '0' }),
  });
  process.kill(daemon.pid!, 'SIGKILL');
  await until('another process', () => seenUrls.length === 2);
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['ended'],
  );
  daemon.begin();
  const [url] = await daemon.ready;
  assert.deepEqual(await (await fetch(url!)).json(), { SKERRY_CORE_PORT: '0', SKERRY_CORE_TOLD: 'first' });
  process.kill(daemon.pid!, 'SIGKILL');
  await until('a second readiness', () => events.filter(({ kind }) => kind === 'ready').length === 2);
  const again = (await (await fetch(daemon.urls![0]!)).json()) as Record<string, string>;
  assert.equal(again.SKERRY_CORE_TOLD, '1');
  await daemon.stop();
});

test('one that was not told to begin stops at once', async () => {
  const { daemon, events } = supervise(undefined, { settings: () => ({}) });
  const pid = daemon.pid!;
  await daemon.stop();
  assert.ok(!isAlive(pid));
  assert.deepEqual(events, []);
});
