import assert from 'node:assert/strict';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError, LIMITS } from '@skerry/protocol';
import { jsonText } from '../output/text.ts';
import { startCore } from '../testing/core.ts';
import { skerryHere, succeedHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';
import { asSource, chooseRuntime, outputOf, parseVariables } from './programs.ts';

const isWrongUse = (error: unknown) => error instanceof AppError && error.kind === 'invalid';

test('the runtime is what was said, else what the ending stands for', () => {
  assert.equal(chooseRuntime('a/hello.PY', undefined), 'python3');
  assert.equal(chooseRuntime('hello.mjs', undefined), 'nodejs');
  assert.equal(chooseRuntime('site.zip', 'nodejs22'), 'nodejs22');
  assert.throws(() => chooseRuntime('site.zip', undefined), isWrongUse);
  assert.throws(() => chooseRuntime('a.py', 'perl'), {
    code: 'INVALID_CONTENT',
    message: /^--runtime must be/,
  });
});

test('text travels in the message, bytes and large text as a file', () => {
  assert.equal(asSource(Buffer.from('print("ä")')), 'print("ä")');
  assert.equal(asSource(Buffer.from([0, 0x61, 0x73, 0x6d])), undefined);
  assert.equal(asSource(Buffer.from([0xff, 0xfe])), undefined);
  assert.equal(asSource(Buffer.alloc(300_000, 'x')), undefined);
  assert.throws(() => asSource(Buffer.alloc(0)), isWrongUse);
});

test('variables are JSON where they can be, else text', () => {
  assert.deepEqual(parseVariables(['a=1', 'b=[true]', 'c=x=y', 'd=']), { a: 1, b: [true], c: 'x=y', d: '' });
  assert.throws(() => parseVariables(['=1']), isWrongUse);
  assert.throws(() => parseVariables(['a']), isWrongUse);
  assert.deepEqual(parseVariables(['id="12345678901234567890"']), { id: '12345678901234567890' });
  assert.throws(() => parseVariables(['id=12345678901234567890']), isWrongUse);
  assert.throws(() => parseVariables(['a=1', 'b=2', 'a=3']), /"a" is given more than once/);
});

test('an answer is told as what it is, also where its type is not true', () => {
  assert.deepEqual(outputOf(Buffer.from('{"a":1}'), 'application/json; charset=utf-8'), { a: 1 });
  assert.equal(outputOf(Buffer.from('{"a":'), 'application/json'), '{"a":');
  assert.equal(outputOf(Buffer.from('{"a":1}'), 'text/plain'), '{"a":1}');
  assert.equal(outputOf(Buffer.from([0, 255]), ''), 'AP8=');
});

test('the numbers of an answer keep their digits', () => {
  const answer = '{"id":12345678901234567890,"wei":[1e400,0.1,-9007199254740993],"n":1}';
  assert.equal(jsonText(outputOf(Buffer.from(answer), 'application/json')), answer);
});

test('a call is waited for as long as the program may take: not by fetch, which gives up after five minutes', async (t) => {
  await using home = await createTestDir();
  await using core = await replying((_url, response) =>
    response.setHeader('net-program-outcome', 'answered').end('é\n'),
  );
  const fetched = t.mock.method(globalThis, 'fetch');
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  const { out, code } = await skerryHere(environment, ['program', 'run', 'a'.repeat(64)]);
  assert.deepEqual([out, code, fetched.mock.callCount()], ['é\n', 0, 0]);
});

test('code that no node would run is not sent, so that nobody pays for its file', async () => {
  await using home = await createTestDir();
  await using core = await replying(() => undefined);
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  await succeedHere(environment, 'key', 'new');
  const file = join(home.path, 'site.zip');
  await writeFile(file, '');
  await truncate(file, LIMITS.programFileBytes + 1);
  const { code, err } = await skerryHere(environment, ['program', 'create', file, '--runtime', 'nodejs']);
  assert.equal(code, 2, err);
  assert.match(err, /site\.zip is too large: .* at most 64\.0 MiB, packed or not \(INVALID_CONTENT\)/);
  assert.deepEqual(core.asked, []);
});

test('what a program may not have is said of the option that asked for it', async () => {
  await using home = await createTestDir();
  await using core = await replying(() => undefined);
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  const file = join(home.path, 'hello.py');
  await writeFile(file, 'print(1)');
  for (const [option, value] of [
    ['--memory', '9999999G'],
    ['--timeout', '99h'],
  ] as const) {
    const { code, err } = await skerryHere(environment, ['program', 'create', file, option, value]);
    assert.equal(code, 2, err);
    assert.match(
      err,
      new RegExp(
        `^error: ${option} \\((MiB|seconds)\\) must be an integer from [0-9]+ to [0-9]+ \\(INVALID_CONTENT\\)`,
      ),
    );
  }
  assert.deepEqual(core.asked, []);
});

test('what a program costs is said before it is sent, to people', async () => {
  await using home = await createTestDir();
  await using core = await startCore(home.path);
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  await succeedHere(environment, 'key', 'new');
  const file = join(home.path, 'hello.py');
  await writeFile(file, 'print(1)');
  const { out, err } = await skerryHere(environment, ['program', 'create', file]);
  assert.match(out, /^[0-9a-f]{64}\n$/);
  assert.match(
    err,
    /^costs 2,850 credits an hour, 68,400 a day until it is deleted, also while nobody calls/,
  );
  assert.equal((await skerryHere(environment, ['program', 'create', file, '--json'])).err, '');
});

test('whoever names a program by its name is told where its hash is', async () => {
  const { err, code } = await skerryHere({}, ['program', 'run', 'hello.py', '--core', 'http://127.0.0.1:9']);
  assert.equal(code, 2);
  assert.match(err, /\(INVALID_HASH\)\nhint: "skerry program list" shows the hashes of your programs\n$/);
});
