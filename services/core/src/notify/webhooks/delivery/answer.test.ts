import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AnswerReader, BadAnswer } from './answer.ts';

/** What is read of bytes that come in these pieces: nothing after the end, as on a connection. */
function read(pieces: readonly string[]) {
  const reader = new AnswerReader();
  let left = pieces.length;
  for (const piece of pieces) {
    if (reader.isDone) break;
    reader.push(Buffer.from(piece, 'latin1'));
    left--;
  }
  const { isDone, head } = reader;
  return { isDone, keepMs: left > 0 ? 0 : reader.keepMs, status: head?.status, retryAfter: head?.retryAfter };
}

function readOrRefuse(pieces: readonly string[]) {
  try {
    return read(pieces);
  } catch (error) {
    if (error instanceof BadAnswer) return error.code;
    throw error;
  }
}

/** Whole, in two pieces wherever they part, and byte by byte: it is read alike. */
function readAnyhow(text: string) {
  const whole = readOrRefuse([text]);
  for (let at = 1; at < text.length; at++)
    assert.deepEqual(readOrRefuse([text.slice(0, at), text.slice(at)]), whole, `in two at ${at}: ${text}`);
  assert.deepEqual(readOrRefuse([...text]), whole, `byte by byte: ${text}`);
  return whole;
}

const FOR_EVER = Number.POSITIVE_INFINITY;
const answer = (first: string, fields: readonly string[] = [], rest = '') =>
  `HTTP/1.1 ${[first, ...fields].join('\r\n')}\r\n\r\n${rest}`;
const CHUNKED = 'transfer-encoding: chunked';

test('where an answer ends, by its length, its chunks or its status, and how long its connection waits then', () => {
  const ends: Readonly<Record<string, number>> = {
    [answer('204 No Content')]: FOR_EVER,
    [answer('204')]: FOR_EVER,
    [answer('304 Not Modified', ['content-length: 5'])]: FOR_EVER,
    [answer('200 OK', ['Content-Length: 5'], 'hello')]: FOR_EVER,
    [answer('200 OK', ['content-length:0'])]: FOR_EVER,
    [answer('200 OK', [CHUNKED], '5\r\nhel\r\n\r\n0\r\n\r\n')]: FOR_EVER,
    [answer('200 OK', ['Transfer-Encoding:  Chunked '], 'A;a="x"\r\n0\r\n\r\n34567\r\n00\r\nx: y\r\n\r\n')]:
      FOR_EVER,
    [answer('204 No Content', ['keep-alive: timeout=5, max=100'])]: 4_000,
    [answer('204 No Content', ['Keep-Alive: max=100, timeout=3'])]: 2_000,
    [answer('204 No Content', ['keep-alive: timeout=1'])]: 0,
    [answer('204 No Content', ['connection: Close'])]: 0,
    [answer('204 No Content', ['connection: x', 'connection: keep-alive,close'])]: 0,
    [answer('204 No Content', ['x: a', '\t connection: close'])]: FOR_EVER,
    [answer('204 No Content').replace('1.1', '1.0')]: 0,
    [answer('204 No Content', ['connection: keep-alive']).replace('1.1', '1.0')]: FOR_EVER,
    // Something comes behind it.
    [answer('204 No Content', [], '\r\n')]: 0,
    [answer('200 OK', ['content-length: 2'], 'hello')]: 0,
    [answer('200 OK', [CHUNKED], '0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n')]: 0,
  };
  for (const [text, keepMs] of Object.entries(ends)) {
    const status = Number(text.slice(9, 12));
    assert.deepEqual(readAnyhow(text), { isDone: true, keepMs, status, retryAfter: undefined }, text);
    // A byte less, and it has not ended.
    if (keepMs > 0) assert.equal(read([text.slice(0, -1)]).isDone, false, text);
  }
});

test('a length that can be read in two ways, or is not said, ends with the connection', () => {
  for (const fields of [
    [],
    ['content-length: 0', 'content-length: 0'],
    ['content-length: 0, 0'],
    ['content-length: -1'],
    ['content-length: +0'],
    ['content-length: 0x0'],
    ['content-length: 0', CHUNKED],
    ['transfer-encoding: gzip, chunked'],
    [CHUNKED, CHUNKED],
  ])
    assert.deepEqual(
      readAnyhow(answer('200 OK', fields, '0\r\n\r\n')),
      { isDone: false, keepMs: 0, status: 200, retryAfter: undefined },
      fields.join('; '),
    );
  assert.equal(read([answer('200 OK', [CHUNKED], '0\r\n\r\n').replace('1.1', '1.0')]).isDone, false);
});

test('answers that are not the last are passed over', () => {
  const early = `${answer('100 Continue')}${answer('103 Early Hints', ['content-length: 7', 'retry-after: 1'])}`;
  const none = { isDone: false, keepMs: 0, status: undefined, retryAfter: undefined };
  assert.deepEqual(readAnyhow(early), none);
  const last = answer('503 Later', ['Retry-After: 120', 'content-length: 0']);
  const all = { isDone: true, keepMs: FOR_EVER, status: 503, retryAfter: '120' };
  assert.deepEqual(readAnyhow(`${early}${last}`), all);
});

test('whatever comes is read alike in whatever pieces, or is no answer', () => {
  const firsts = [
    'HTTP/1.1 200 OK',
    'HTTP/1.0 200',
    'HTTP/1.1 204 ',
    'HTTP/1.1 103',
    'HTTP/1.1 101',
    'HTTP/1.1 20',
  ];
  const fields = [
    ...['content-length: 5', 'content-length: 0', CHUNKED, 'connection: close', 'connection: keep-alive'],
    ...['keep-alive: timeout=9', 'retry-after: 1', ' folded', 'bad', ': worse', 'a:\nb', '\r', ''],
  ];
  const rests = ['0\r\n', '\r\n', '5\r\n', 'hello', 'A;x=y\r\n', 'x: y\r\n', '\n', 'HTTP/1.1 200 OK\r\n\r\n'];
  const some = (of: readonly string[]) => fc.array(fc.constantFrom(...of), { maxLength: 4 });
  fc.assert(
    fc.property(fc.constantFrom(...firsts), some(fields), some(rests), (first, lines, rest) => {
      readAnyhow(`${[first, ...lines].join('\r\n')}\r\n\r\n${rest.join('')}`);
    }),
    { numRuns: 2_000 },
  );
});

test('what is no answer is said to be none as soon as that can be seen', () => {
  const bad: Readonly<Record<string, string | undefined>> = {
    S: 'HPE_INVALID_CONSTANT',
    '\r': 'HPE_INVALID_CONSTANT',
    'HTTP/2': 'HPE_INVALID_CONSTANT',
    h: 'HPE_INVALID_CONSTANT',
    'HTTP/1.2 200 OK\r\n\r\n': 'HPE_INVALID_STATUS',
    [answer('20 OK')]: 'HPE_INVALID_STATUS',
    [answer('2000 OK')]: 'HPE_INVALID_STATUS',
    [answer('099 OK')]: 'HPE_INVALID_STATUS',
    [answer('200\tOK')]: 'HPE_INVALID_STATUS',
    [answer('200 O\nK')]: 'HPE_INVALID_STATUS',
    [answer('200 OK', ['content-length : 5'])]: 'HPE_INVALID_HEADER_TOKEN',
    [answer('200 OK', ['content-length'])]: 'HPE_INVALID_HEADER_TOKEN',
    [answer('200 OK', [': 5'])]: 'HPE_INVALID_HEADER_TOKEN',
    [answer('200 OK', ['x: y\ncontent-length: 5'])]: 'HPE_INVALID_HEADER_TOKEN',
    // Nobody asked for another protocol.
    [answer('101 Switching Protocols', ['connection: upgrade', 'upgrade: x'])]: undefined,
    [answer('200 OK', [CHUNKED], 'x\r\n')]: undefined,
    [answer('200 OK', [CHUNKED], '-1\r\n')]: undefined,
    [answer('200 OK', [CHUNKED], '\r\n')]: undefined,
    [answer('200 OK', [CHUNKED], '123456789\r\n')]: undefined,
    [answer('200 OK', [CHUNKED], '2\r\nabc\r\n0\r\n')]: undefined,
  };
  for (const [text, code] of Object.entries(bad)) {
    const isBad = (error: unknown) => error instanceof BadAnswer && error.code === code;
    assert.throws(() => read([text]), isBad, text);
    assert.throws(() => read([...text]), isBad, text);
    assert.doesNotThrow(() => read([...text].slice(0, -1)), text);
  }
});

test('heads have 16 KiB, those before the last included; the rest 64 KiB', () => {
  const overflows = { name: 'BadAnswer', code: 'HPE_HEADER_OVERFLOW' };
  const headOf = (bytes: number) =>
    answer('204 No Content', [`x: ${'a'.repeat(bytes - answer('204 No Content', ['x: ']).length)}`]);
  const most = 16 * 1024;
  for (const pieces of [[headOf(most)], [...headOf(most)]]) assert.equal(read(pieces).isDone, true);
  assert.throws(() => read([headOf(most + 5)]), overflows);
  assert.throws(() => read(['HTTP/1.1 200 OK\r\n', 'a'.repeat(most)]), overflows);
  const early = answer('103 Early Hints');
  assert.throws(() => read(Array.from({ length: most / early.length + 1 }, () => early)), overflows);
  const rest = 64 * 1024;
  assert.equal(read([answer('200 OK', [`content-length: ${rest}`]), 'a'.repeat(rest)]).isDone, true);
  for (const field of [`content-length: ${rest + 1}`, CHUNKED, 'x: y'])
    assert.throws(
      () => read([answer('200 OK', [field]), `${(rest + 1).toString(16)}\r\n`, 'a'.repeat(rest + 1)]),
      { name: 'BadAnswer' },
      field,
    );
});
