import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { run } from '../host/run.ts';
import { wasmCommand } from './testing/attacks.ts';
import { TestPrograms } from './testing/setup.ts';
import { storedZip } from './testing/zip.ts';

/** What a program may be, in each runtime, in real sandboxes. */

let room: TestPrograms;
before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  room = await TestPrograms.open();
});
after(() => room[Symbol.asyncDispose]());

/** A request with something in each of its fields, and what a function is given of it. */
const REQUEST = {
  ...{ method: 'PUT', path: '/a%20b', query: 'c=d%20e', headers: { 'x-a': 'e' } },
  body: Buffer.from([0x66, 0xff]),
};
const GIVEN = { ...REQUEST, body: [0x66, 0xff] };

const variables = { a: 2, b: 3 };
const answers = async (hash: string, text: string, code = '200') =>
  assert.deepEqual(await room.outcomeOf(hash, variables), { code, text });

describe('JavaScript', () => {
  const forms: Readonly<Record<string, string>> = {
    'a function main': 'function main({ a, b }) { return a + b; }',
    'an asynchronous one': 'const main = async ({ a, b }) => { await null; return a + b; };',
    handler: 'function handler(v) { return v.a + v.b; }',
    'module.exports': 'module.exports = (v) => v.a + v.b;',
    'exports.main with require':
      "const { sum } = { sum: (...all) => all.reduce((x, y) => x + y) }; require('node:fs'); exports.main = (v) => sum(v.a, v.b);",
    'a module with a default function':
      "import { strict } from 'node:assert'; export default (v) => { strict(v); return v.a + v.b; };",
    'a module with fetch':
      'export default { async fetch(request) { const { variables: v } = await request.json(); return Response.json(v.a + v.b); } };',
    'a script': 'console.log(variables.a + variables.b)',
    'a script that takes its time': "setTimeout(() => process.stdout.write('5'), 20)",
    'a script that exits': "process.stdout.write('5'); process.exit(0)",
    'a module without exports': "import 'node:fs'; process.stdout.write(String(await Promise.resolve(5)));",
  };
  for (const [name, code] of Object.entries(forms))
    test(name, async () => {
      const hash = room.add('nodejs', code);
      const { code: status, text } = await room.outcomeOf(hash, variables, {
        body: Buffer.from(JSON.stringify({ variables })),
      });
      assert.deepEqual([status, text.trim()], ['200', '5']);
    });

  test('answers are JSON, text or bytes', async () => {
    const hash = room.add(
      'nodejs',
      "function main({ kind }) { return { text: 'a', bytes: new Uint8Array([1]), json: { a: 1 } }[kind]; }",
    );
    const types = [];
    for (const kind of ['text', 'bytes', 'json', 'none']) {
      const { result } = await room.run(hash, { kind });
      assert.ok(result.kind === 'answer');
      types.push([result.headers['content-type'], result.body.toString('latin1')]);
    }
    assert.deepEqual(types, [
      ['text/plain; charset=utf-8', 'a'],
      ['application/octet-stream', '\x01'],
      ['application/json', '{"a":1}'],
      ['application/json', 'null'],
    ]);
  });

  test('what a script writes is JSON only where every reader takes it for that', async () => {
    const written = async (bytes: number[]) => {
      const code = `process.stdout.write(new Uint8Array([${bytes.join(',')}]))`;
      const { result } = await room.run(room.add('nodejs', code));
      assert.ok(result.kind === 'answer');
      return result.headers['content-type'];
    };
    assert.equal(await written([...Buffer.from('"\u00e9"')]), 'application/json');
    const others = [[0x22, 0xff, 0x22], [0xef, 0xbb, 0xbf, 0x31], [...Buffer.from('NaN')]];
    for (const bytes of others) assert.equal(await written(bytes), 'text/plain; charset=utf-8');
  });

  test('a function is given the whole request; one that exits has failed, unless with 0', async () => {
    const hash = room.add(
      'nodejs',
      'function main(v, { body, ...rest }) { return Buffer.isBuffer(body) && { ...rest, body: [...body] }; }',
    );
    assert.deepEqual(JSON.parse((await room.outcomeOf(hash, {}, REQUEST)).text), GIVEN);
    const exits = room.add('nodejs', 'function main({ code }) { process.exit(code); }');
    const failed = await room.outcomeOf(exits, { code: 3 });
    assert.deepEqual([failed.code, /exit code 3/.test(failed.text)], ['PROGRAM_FAILED', true]);
    assert.deepEqual(await room.outcomeOf(exits, { code: 0 }), { code: '200', text: '' });
  });

  test('a call that cannot be written fails alone, and its sandbox may end after it', async () => {
    await using own = await TestPrograms.open({ spares: 0 });
    const hash = own.add('nodejs', 'function main() { return 1; }');
    let deep: unknown[] = [];
    for (let depth = 0; depth < 20_000; depth++) deep = [deep];
    // With a number among its keys an object is written by what recurses.
    await assert.rejects(own.run(hash, { 0: 1, deep }), RangeError);
  });

  test('the request is there in whole', async () => {
    const hash = room.add(
      'nodejs',
      `export default { async fetch(r) {
        const { pathname, search } = new URL(r.url);
        const text = [r.method, pathname + search, r.headers.get('x-a'), await r.text()].join(' ');
        return new Response(text, { status: 418, headers: { 'x-b': 'c' } });
      } }`,
    );
    const { result } = await room.run(
      hash,
      {},
      { method: 'PUT', path: '/a%20b', query: 'c=d', headers: { 'x-a': 'e' }, body: Buffer.from('f') },
    );
    assert.ok(result.kind === 'answer');
    assert.deepEqual(
      [result.status, result.body.toString(), result.headers['x-b']],
      [418, 'PUT /a%20b?c=d e f', 'c'],
    );
  });

  test('errors come with their traceback, at the start and in a call; the next call is well', async () => {
    const broken = await room.outcomeOf(room.add('nodejs', 'let x = ;'));
    assert.equal(broken.code, 'PROGRAM_FAILED');
    assert.match(broken.text, /SyntaxError.*Unexpected token/s);
    const hash = room.add(
      'nodejs',
      "function main({ bad }) { if (bad) throw new TypeError('on purpose'); return 'well'; }",
    );
    assert.match(
      (await room.outcomeOf(hash, { bad: true })).text,
      /^TypeError: on purpose\n\s+at main \(\/tmp\/program\.js:1:/,
    );
    await answers(hash, 'well');
    const later = room.add(
      'nodejs',
      "function main() { setTimeout(() => { throw new Error('later'); }, 1); return new Promise(() => {}); }",
    );
    assert.match((await room.outcomeOf(later)).text, /Error: later/);
  });

  test('large code and large requests', async () => {
    const large = `const text = '${'x'.repeat(20 << 20)}'; function main(v, { body }) { return text.length + body.length; }`;
    const hash = room.add('nodejs', large, { memoryMib: 256 });
    const { text } = await room.outcomeOf(hash, {}, { body: Buffer.alloc(8 << 20) });
    assert.equal(text, String(28 << 20));
  });

  test('an archive', async () => {
    const files = {
      'lib/sum.js': 'exports.sum = (v) => v.a + v.b;',
      'index.js': "exports.main = require('./lib/sum.js').sum;",
    };
    await answers(room.add('nodejs', storedZip(files), { encoding: 'zip' }), '5');
    const named = { 'other.mjs': 'export const go = (v) => v.a * v.b;' };
    await answers(room.add('nodejs', storedZip(named), { encoding: 'zip', entrypoint: 'other:go' }), '6');
    const none = await room.outcomeOf(room.add('nodejs', gzipSync('x'), { encoding: 'zip' }));
    assert.match(none.text, /not a zip archive/);
  });
});

describe('Python', () => {
  const forms: Readonly<Record<string, string>> = {
    'a function main': 'def main(variables):\n  return variables["a"] + variables["b"]',
    'an asynchronous one': 'async def main(variables):\n  return variables["a"] + variables["b"]',
    'handler with the request':
      'def handler(variables, request):\n  assert request["method"] == "POST"\n  return variables["a"] + variables["b"]',
    'main without parameters': 'def main():\n  return variables["a"] + variables["b"]',
    'a script': 'print(variables["a"] + variables["b"])',
    'a script that exits': 'import sys\nprint(5)\nsys.exit(0)',
  };
  for (const [name, code] of Object.entries(forms))
    test(name, async () => {
      const { code: status, text } = await room.outcomeOf(room.add('python3', code), variables);
      assert.deepEqual([status, text.trim()], ['200', '5']);
    });

  test('an application of ASGI, with its lifespan', async () => {
    const code = `
started = 0
async def app(scope, receive, send):
  global started
  if scope["type"] == "lifespan":
    await receive()
    started += 1
    await send({"type": "lifespan.startup.complete"})
    await receive()
  event = await receive()
  text = f'{scope["method"]} {scope["path"]} {scope["query_string"].decode()} {dict(scope["headers"])[b"x-a"].decode()} {event["body"].decode()} {started}'
  await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"text/plain")]})
  await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
  await send({"type": "http.response.body"})
`;
    const hash = room.add('python3', code);
    for (let n = 0; n < 2; n++) {
      const { result } = await room.run(
        hash,
        {},
        { method: 'PUT', path: '/a%20b', query: 'c=d', headers: { 'x-a': 'e' }, body: Buffer.from('f') },
      );
      assert.ok(result.kind === 'answer');
      assert.deepEqual([result.status, result.body.toString()], [201, 'PUT /a b c=d e f 1']);
    }
  });

  test('an application of WSGI, by either of its customary names', async () => {
    const body = `
  text = f'{environ["REQUEST_METHOD"]} {environ["PATH_INFO"]} {environ["QUERY_STRING"]} {environ["HTTP_X_A"]} {environ["CONTENT_TYPE"]} '
  start_response("201 Created", [("content-type", "text/plain")])
  yield text.encode()
  yield environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
`;
    const headers = { 'x-a': 'e', 'content-type': 'text/x' };
    for (const name of ['app', 'application']) {
      const hash = room.add('python3', `def ${name}(environ, start_response):${body}`);
      const call = { method: 'PUT', path: '/a%20b', query: 'c=d', headers, body: Buffer.from('f') };
      const { result } = await room.run(hash, {}, call);
      assert.ok(result.kind === 'answer', JSON.stringify(result));
      assert.deepEqual([result.status, result.body.toString()], [201, 'PUT /a b c=d e text/x f']);
    }
  });

  test('errors come with their traceback and its lines; the next call is well', async () => {
    const hash = room.add(
      'python3',
      'def main(variables):\n  if variables.get("bad"):\n    raise ValueError("on purpose")\n  return "well"',
    );
    const failed = await room.outcomeOf(hash, { bad: true });
    assert.equal(
      failed.text,
      'Traceback (most recent call last):\n  File "program.py", line 3, in main\n    raise ValueError("on purpose")\nValueError: on purpose\n',
    );
    await answers(hash, 'well');
    assert.match((await room.outcomeOf(room.add('python3', 'def main(:'))).text, /SyntaxError/);
    assert.match((await room.outcomeOf(room.add('python3', 'import numpy'))).text, /No module named 'numpy'/);
  });

  test('what JSON cannot say is an error, and no JSON where a script writes it', async () => {
    const returns = room.add('python3', 'def main(v):\n  return {"x": [float(v["x"])]}');
    for (const x of ['nan', 'inf', '-inf']) {
      const { code, text } = await room.outcomeOf(returns, { x });
      assert.deepEqual([code, /ValueError.*not JSON compliant/.test(text)], ['PROGRAM_FAILED', true]);
    }
    assert.deepEqual(await room.outcomeOf(returns, { x: '1' }), { code: '200', text: '{"x": [1.0]}' });
    const others = ['float("nan")', '[float("inf")]', '"[" * 100000'];
    for (const text of others) {
      const { result } = await room.run(room.add('python3', `print(${text})`));
      assert.ok(result.kind === 'answer', text);
      assert.equal(result.headers['content-type'], 'text/plain; charset=utf-8', text);
    }
  });

  test('a function is given the whole request; one that exits has failed', async () => {
    const hash = room.add(
      'python3',
      'def main(v, request):\n  assert type(request["body"]) is bytes\n  return request | {"body": list(request["body"])}',
    );
    assert.deepEqual(JSON.parse((await room.outcomeOf(hash, {}, REQUEST)).text), GIVEN);
    const exits = room.add('python3', 'import sys\ndef main(v):\n  sys.exit(v["code"])');
    for (const code of [0, 3]) {
      const failed = await room.outcomeOf(exits, { code });
      assert.deepEqual([failed.code, failed.text.includes(`SystemExit: ${code}`)], ['PROGRAM_FAILED', true]);
    }
  });

  test('an archive, with an entry point or by custom', async () => {
    const files = {
      'pkg/__init__.py': '',
      'pkg/sums.py': 'def add(v):\n  return v["a"] + v["b"]',
      'main.py': 'from pkg.sums import add as main',
    };
    await answers(room.add('python3', storedZip(files), { encoding: 'zip' }), '5');
    await answers(
      room.add('python3', storedZip(files), { encoding: 'zip', entrypoint: 'pkg.sums:add' }),
      '5',
    );
  });
});

test('a directory packed with squashfs is unpacked inside; what is no such file says so', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-squashfs-'));
  try {
    await mkdir(join(directory, 'root/pkg'), { recursive: true });
    await writeFile(join(directory, 'root/pkg/__init__.py'), 'def add(v):\n  return v["a"] + v["b"]');
    await writeFile(join(directory, 'root/main.py'), 'from pkg import add as main');
    const file = join(directory, 'code.squashfs');
    await run('mksquashfs', [join(directory, 'root'), file, '-quiet', '-no-progress']);
    const options = { encoding: 'squashfs', entrypoint: 'main' } as const;
    await answers(room.add('python3', await readFile(file), options), '5');
    const { code, text } = await room.outcomeOf(room.add('python3', 'hsqs and no more', options));
    assert.deepEqual([code, /cannot be unpacked/.test(text)], ['PROGRAM_FAILED', true]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('WebAssembly: a command that reads its input and writes its output, in binary or base64', async () => {
  // fd_write of "5" to standard output.
  const bytes = wasmCommand();
  for (const code of [bytes, bytes.toString('base64')])
    assert.deepEqual(await room.outcomeOf(room.add('wasm', code as Buffer)), { code: '200', text: '' });
  assert.match((await room.outcomeOf(room.add('wasm', Buffer.from('none')))).text, /CompileError/);
  const often = room.add('wasm', bytes);
  for (let n = 0; n < 400; n++) assert.equal((await room.outcomeOf(often)).code, '200');
});
