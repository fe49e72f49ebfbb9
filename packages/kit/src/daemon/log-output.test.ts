import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AppError } from '@skerry/protocol/forms';
import { isJournal, withPriority } from './journal.ts';
import { createLogger } from './log.ts';
import { createLogOutput } from './log-output.ts';

const LOG = fileURLToPath(new URL('./log.ts', import.meta.url));
const script = (body: string) =>
  `import { createLogger } from ${JSON.stringify(LOG)}; const log = createLogger('t'); ${body}`;

test('a process whose log reader is gone goes on, and ends', async () => {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      script(
        "process.stdin.once('data', () => { for (let n = 0; n < 1000; n++) log.info('x'.repeat(200)); process.exit(7); })",
      ),
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  child.stdout.destroy();
  child.stdin.write('go');
  const [code] = (await once(child, 'exit')) as [number];
  assert.equal(code, 7);
});

test('every line reaches a reader, also those right before the end', async () => {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      script("for (let n = 0; n < 3000; n++) log.info({ n }, 'line'); process.exit(0)"),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  const numbers = text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { n: number }).n);
  assert.deepEqual(
    numbers,
    Array.from({ length: 3000 }, (_, n) => n),
  );
});

test('a log on a full disk goes on when there is room again, and says how many lines it lacks', (t) => {
  const home = mkdtempSync(join(tmpdir(), 'skerry-log-'));
  t.after(() => rmSync(home, { recursive: true }));
  const path = join(home, 'log');
  const fd = openSync('/dev/full', 'a');
  const output = createLogOutput(fd, (record) => `> ${record}`);
  for (const line of ['first\n', 'second\n']) output.write(line);
  // The same number is a file with room now.
  closeSync(fd);
  assert.equal(openSync(path, 'a'), fd);
  for (const line of ['third\n', 'fourth\n']) output.write(line);
  closeSync(fd);
  const [notice, ...lines] = readFileSync(path, 'utf8').trim().split('\n');
  assert.deepEqual(lines, ['third', 'fourth']);
  assert.match(notice!, /^> \{.*"lines":2/);
});

const SERVICE = fileURLToPath(new URL('../testing/service.ts', import.meta.url));

/** What a service whose start fails logs; `script` (util-linux) gives it a terminal. */
async function logOf(isTerminal: boolean, format?: string): Promise<{ text: string; code: number }> {
  const command = [process.execPath, SERVICE];
  const [file, args] = isTerminal
    ? ['script', ['-qec', command.join(' '), '/dev/null']]
    : [command[0]!, command.slice(1)];
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', TEST_START: 'fails', SKERRY_LOG_FORMAT: format },
  });
  const exited = once(child, 'exit');
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  return { text: text.trim(), code: (await exited)[0] as number };
}

const FOR_PEOPLE = /^\d\d:\d\d:\d\d test +error: the service failed to start: its database is away$/;

test('a daemon logs sentences on a terminal, JSON into a pipe, and what SKERRY_LOG_FORMAT says', async () => {
  assert.match((await logOf(true)).text, FOR_PEOPLE);
  assert.match((await logOf(false, 'people')).text, FOR_PEOPLE);
  for (const { text } of [await logOf(false), await logOf(true, 'json')])
    assert.equal((JSON.parse(text) as { msg: string }).msg, 'the service failed to start');
  assert.notEqual((await logOf(false, 'xml')).code, 0);
});

test("systemd's journal is told how important each line is, and nobody else is", async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'skerry-log-'));
  t.after(() => rmSync(home, { recursive: true }));
  const path = join(home, 'log');
  const fd = openSync(path, 'w');
  const { dev, ino } = fstatSync(fd, { bigint: true });
  const stream = `${dev}:${ino}`;
  assert.deepEqual(
    [stream, `${stream}0`, '', undefined].map((one) => isJournal(fd, one)),
    [true, false, false, false],
  );
  const child = spawn(process.execPath, [SERVICE], {
    stdio: ['ignore', fd, 'inherit'],
    env: { ...process.env, TEST_START: 'fails', JOURNAL_STREAM: stream },
  });
  await once(child, 'exit');
  closeSync(fd);
  assert.equal(isJournal(fd, stream), false);
  assert.match(readFileSync(path, 'utf8'), /^<3>\{"level":50,.*\}\n$/);
});

test('a record has the priority of its level, on each of its lines', () => {
  const records = [60, 50, 40, 30, 20, 10].map((level) => `{"level":${level},"msg":"x"}`);
  assert.deepEqual(
    records.map((record) => withPriority(record, 'x')),
    ['<2>x', '<3>x', '<4>x', '<6>x', '<7>x', '<7>x'],
  );
  assert.equal(withPriority(records[1]!, 'failed\n  at home'), '<3>failed\n<3>  at home');
  assert.equal(withPriority('no record', 'x'), '<6>x');
});

test('a logged error says what its causes say, once', () => {
  const lines: string[] = [];
  const log = createLogger('test', 'info', { write: (line) => void lines.push(line) });
  const reset = new Error('read ECONNRESET');
  log.error({ err: new Error(`it does not answer: ${reset.message}`, { cause: reset }) }, 'failed');
  log.error(
    { err: new Error('a batch failed', { cause: new Error('no answer', { cause: reset }) }) },
    'failed',
  );
  log.error({ err: 'a text' }, 'failed');
  const errors = lines.map((line) => (JSON.parse(line) as { err: { message?: string; stack?: string } }).err);
  assert.deepEqual(
    errors.map((error) => error.message ?? error),
    ['it does not answer: read ECONNRESET', 'a batch failed: no answer: read ECONNRESET', 'a text'],
  );
  assert.match(errors[1]?.stack ?? '', /caused by: Error: no answer/);
});

test('an error of ours that is foreseen is told without its stack', () => {
  const lines: string[] = [];
  const log = createLogger('test', 'info', { write: (line) => void lines.push(line) });
  for (const error of [
    new AppError('INVALID_IMAGE', 'no disk'),
    new AppError('INVALID_IMAGE', 'no disk', { cause: new Error('why') }),
    new AppError('INTERNAL', 'no disk'),
    new Error('no disk'),
  ])
    log.warn({ err: error }, 'failed');
  const errors = lines.map((line) => (JSON.parse(line) as { err: { code?: string; stack?: string } }).err);
  assert.deepEqual(
    errors.map(({ code, stack }) => [code, stack !== undefined]),
    [
      ['INVALID_IMAGE', false],
      ['INVALID_IMAGE', true],
      ['INTERNAL', true],
      [undefined, true],
    ],
  );
});

test('an error among its own causes is logged, too', () => {
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  const error = new Error('around');
  error.cause = new Error('and again', { cause: error });
  log.error({ err: error }, 'failed');
  assert.equal((JSON.parse(lines[0]!) as { err: Error }).err.message, 'around: and again');
});

test('no field of a record stands for what the log itself says: whose it is, when and how important', () => {
  const lines: string[] = [];
  const log = createLogger('compute', 'info', { write: (line) => void lines.push(line) });
  log.child({ instance: 'a' }).info({ name: 'debian:12', level: 'high', diskMib: 4 }, 'an image is ready');
  log.info({ image: 'debian:12' }, 'another');
  const [first = '', second = ''] = lines;
  assert.equal(first.match(/"name":/g)?.length, 1);
  const { time, ...record } = JSON.parse(first);
  assert.equal(typeof time, 'number');
  const own = { level: 30, name: 'compute', instance: 'a', msg: 'an image is ready' };
  assert.deepEqual(record, { ...own, name_: 'debian:12', level_: 'high', diskMib: 4 });
  assert.equal(JSON.parse(second).image, 'debian:12');
});
