import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { AppError } from '@skerry/protocol/forms';
import { createTestDir } from '../testing/run.ts';
import { readContent as readOption } from './content.ts';

const nothing = Readable.from([]);
const readContent = (given: string, stdin: AsyncIterable<Buffer | string>) =>
  readOption({ option: '--answer', given }, stdin);

test('JSON, a file, or standard input', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'note.json');
  await writeFile(path, '{"a":2}');
  assert.deepEqual(await readContent('{"a":1}', nothing), { a: 1 });
  assert.deepEqual(await readContent(`@${path}`, nothing), { a: 2 });
  assert.deepEqual(await readContent('-', Readable.from([Buffer.from('{"a"'), Buffer.from(':3}')])), {
    a: 3,
  });
});

test('what is not an object of JSON is refused', async () => {
  for (const text of ['', '{', 'hello'])
    await assert.rejects(readContent(text, nothing), { code: 'INVALID_JSON' });
  for (const text of ['1', '[]', 'null', '"x"'])
    await assert.rejects(readContent(text, nothing), { code: 'INVALID_CONTENT' });
  await assert.rejects(readContent('@/nonexistent/file', nothing), { code: 'INVALID_PARAMETERS' });
});

test('what would not be signed as it was given is refused', async () => {
  const lost: readonly (readonly [string, RegExp])[] = [
    ['{"wei":12345678901234567890}', /^the number 12345678901234567890 would become 12345678901234567000/],
    ['{"a":[{"b":-9007199254740993}]}', /-9007199254740993 would become/],
    ['{"a":0.12345678901234567890}', /would become/],
    ['{"a":1e999}', /a number too large to keep/],
    ['{"a":1,"a":2}', /the key "a" twice/],
    ['{"a":"\\ud800"}', /half of a surrogate pair/],
  ];
  for (const [text, message] of lost)
    await assert.rejects(readContent(text, nothing), { code: 'INVALID_JSON', message }, text);
  const kept =
    '{"a":[0,-0,0.10,1.50e3,1E-7,9007199254740991,1e21,100000000000000000000,5e-324],"b":"12345678901234567890"}';
  assert.deepEqual(await readContent(kept, nothing), JSON.parse(kept));
});

test('reads no more than a message may have', async () => {
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(65_536, 32);
    })(),
  );
  await assert.rejects(readContent('-', endless), { code: 'BODY_TOO_LARGE' });
});

test('what is no JSON is said of its option, and whoever names a file is told how', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'draw it.json');
  await writeFile(path, '{}');
  await assert.rejects(readContent(path, nothing), (error: AppError) => {
    assert.match(error.message, /^--answer is not JSON: /);
    assert.deepEqual(error.details, { hint: `'@${path}' reads the file of this name` });
    return true;
  });
  await assert.rejects(readContent('none.json', nothing), { details: undefined });
  await assert.rejects(readContent('[]', nothing), { message: '--answer must be a JSON object' });
});
