import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { listen } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import fc from 'fast-check';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const LIMIT = 8 * 1024 * 1024;
const BOUNDARY = 'the-boundary';
const hashOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');

const part = (disposition: string, value: Buffer | string, type?: string) =>
  Buffer.concat([
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n${type ? `Content-Type: ${type}\r\n` : ''}\r\n`,
    ),
    Buffer.from(value as string),
    Buffer.from('\r\n'),
  ]);
const END = Buffer.from(`--${BOUNDARY}--\r\n`);
const signedParts = (bytes: Buffer | string) => [
  part('name="address"', signers.alice.address),
  part('name="signature"', signers.alice.sign(hashOf(bytes))),
];

describe('uploads over a socket', () => {
  let core: TestCore;
  let port: number;
  const rejections: unknown[] = [];
  const note = (reason: unknown) => rejections.push(reason);
  before(async () => {
    core = await createTestCore({ uploadLimitBytes: LIMIT });
    port = Number(new URL(await listen(core.api, '127.0.0.1', 0)).port);
    process.on('unhandledRejection', note);
  });
  after(async () => {
    process.off('unhandledRejection', note);
    await core[Symbol.asyncDispose]();
  });
  const spooled = () => readdir(join(core.filesDir, 'incoming'));
  const head = (length: number | 'chunked', type = `multipart/form-data; boundary=${BOUNDARY}`) =>
    `POST /api/v0/storage/store HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\n${length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`}\r\n\r\n`;
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };
  const post = (body: Buffer, type?: string) =>
    core.post('/storage/store', body, {
      'content-type': type ?? `multipart/form-data; boundary=${BOUNDARY}`,
    });
  /** Until the spool holds this many files: what a request leads to is not told to who does not wait for its answer. */
  const untilSpooled = (count: number) =>
    until(`${count} files in the spool`, spooled, ({ length }) => length === count);

  test('what is no form is refused before it has come', async () => {
    const socket = await open();
    socket.write(`${head(1e9, 'application/json')}[`);
    const [first] = (await once(socket, 'data')) as [Buffer];
    assert.match(first.toString(), /^HTTP\/1\.1 415 /);
    socket.destroy();
  });

  test('a sender that hangs up half-way leaves nothing: no file, no rejection without a handler', async () => {
    const start = part('name="file"; filename="a"', randomBytes(3_000_000)).subarray(0, -2);
    for (const cut of ['destroy', 'resetAndDestroy', 'end'] as const) {
      const socket = await open();
      socket.on('error', () => {});
      socket.write(head(6_000_000));
      socket.write(start);
      await untilSpooled(1);
      socket[cut]();
      await untilSpooled(0);
      socket.destroy();
    }
    // Within a field, after the file.
    const socket = await open();
    socket.write(head(6_000_000));
    socket.write(
      Buffer.concat([start, Buffer.from(`\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; na`)]),
    );
    await untilSpooled(1);
    socket.destroy();
    await untilSpooled(0);
    assert.deepEqual(rejections, []);
    assert.equal((await core.get('/storage/limits.json')).status, 200);
  });

  test('too large: refused at once by its length, or as soon as it is too much; the answer arrives; nothing is left', async () => {
    /** What the node answers, while the form is still open. */
    const answerOf = (socket: Socket): Promise<string> => {
      let answer = '';
      return new Promise((resolve, reject) => {
        socket.on('error', reject).on('end', () => reject(new Error(`ended with ${answer}`)));
        socket.on('data', (chunk) => {
          answer += chunk;
          if (answer.includes('"code"')) resolve(answer);
        });
      });
    };
    const refused = /^HTTP\/1.1 413 [\s\S]*"code":"FILE_TOO_LARGE"/;
    const declared = await open();
    declared.write(head(LIMIT * 4));
    assert.match(await answerOf(declared), refused);
    declared.destroy();

    const socket = await open();
    let answer: string | undefined;
    const answering = answerOf(socket).then((got) => {
      answer = got;
    });
    socket.write(head('chunked'));
    const opening = part('name="file"; filename="a"', '').subarray(0, -2);
    const piece = randomBytes(1_000_000);
    const chunk = (bytes: Buffer) =>
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
    socket.write(chunk(opening));
    // The form never ends; the node does not wait for that.
    for (let sent = 0; sent < 50 && answer === undefined; sent++) {
      socket.write(chunk(piece));
      while (socket.writableNeedDrain && answer === undefined) await new Promise(setImmediate);
    }
    await answering;
    assert.match(answer!, refused);
    socket.destroy();
    await untilSpooled(0);
    assert.deepEqual(rejections, []);
    const exact = randomBytes(LIMIT);
    const { status } = await post(
      Buffer.concat([...signedParts(exact), part('name="file"; filename="a"', exact), END]),
    );
    assert.equal(status, 200, 'exactly the limit is taken');
  });

  test('a part of the name "file" is the file, also without file name and type', async () => {
    const content = `text of ${'x'.repeat(100_000)}`;
    const { status, body } = await post(
      Buffer.concat([part('name="file"', content), ...signedParts(content), END]),
    );
    assert.deepEqual([status, body.file_hash], [200, hashOf(content)], 'fields may come after the file');
    const read = await core.get(`/storage/${hashOf(content)}`);
    assert.deepEqual([read.headers['content-type'], read.body.toString()], ['text/plain', content]);
  });

  test('forms that are wrong are refused with a reason, whatever is wrong with them', async () => {
    const bytes = randomBytes(1000);
    const file = part('name="file"; filename="a"', bytes, 'image/png');
    const fields = signedParts(bytes);
    const whole = Buffer.concat([...fields, file, END]);
    const cases: [string, Buffer, string?, string?][] = [
      ['no boundary', whole, 'multipart/form-data', 'INVALID_PARAMETERS'],
      ['an empty boundary', whole, 'multipart/form-data; boundary=', 'INVALID_PARAMETERS'],
      ['another boundary', whole, 'multipart/form-data; boundary=other'],
      ['not a form', whole, 'application/x-www-form-urlencoded', 'UNSUPPORTED_MEDIA_TYPE'],
      ['another multipart', whole, `multipart/mixed; boundary=${BOUNDARY}`, 'UNSUPPORTED_MEDIA_TYPE'],
      ['nothing', Buffer.alloc(0)],
      ['only an end', END],
      ['no end', whole.subarray(0, -10)],
      ['cut within the file', Buffer.concat([...fields, file.subarray(0, -500)])],
      ['cut within a head', Buffer.concat([...fields, file.subarray(0, 40)])],
      ['the file twice', Buffer.concat([...fields, file, file, END])],
      ['a file of another name', Buffer.concat([...fields, part('name="photo"; filename="a"', bytes), END])],
      ['a field as a file', Buffer.concat([part('name="address"; filename="a"', 'x'), file, END])],
      ['a field twice', Buffer.concat([...fields, fields[0]!, file, END])],
      ['a field of prototypes', Buffer.concat([...fields, part('name="toString"', 'x'), file, END])],
      ['a part without a name', Buffer.concat([...fields, part('filename="a"', bytes), END])],
      ['a field that is too long', Buffer.concat([part('name="tags"', 'x'.repeat(20_000)), file, END])],
      ['too many fields', Buffer.concat([...Array(30).fill(part('name="tags"', 'x')), file, END])],
    ];
    for (const [name, body, type, code] of cases) {
      const answer = await post(body, type);
      assert.equal(answer.body.status, 'error', name);
      assert.ok(
        answer.status >= 400 && answer.status < 500,
        `${name}: ${answer.status} ${answer.body.error}`,
      );
      assert.equal(answer.body.code, code ?? answer.body.code, name);
      assert.deepEqual(await spooled(), [], name);
    }
    assert.deepEqual(rejections, []);
    assert.equal((await post(whole)).status, 200, 'and right, it is taken');
  });

  test('fuzz: a form that was damaged anywhere is taken or refused, never an internal fault', async () => {
    const bytes = Buffer.from('a small file');
    const whole = Buffer.concat([...signedParts(bytes), part('name="file"; filename="a"', bytes), END]);
    const damage = fc.record({
      at: fc.nat(whole.length - 1),
      remove: fc.nat(40),
      insert: fc.oneof(
        fc.uint8Array({ maxLength: 8 }),
        fc.constantFrom(Buffer.from(`\r\n--${BOUNDARY}`), Buffer.from('\r\n\r\n')),
      ),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ at, remove, insert }) => {
        const body = Buffer.concat([whole.subarray(0, at), insert, whole.subarray(at + remove)]);
        const answer = await post(body);
        assert.ok(answer.status < 500, `${answer.status} ${answer.body.error}`);
        assert.deepEqual(await spooled(), []);
      }),
      { numRuns: 300 },
    );
    assert.deepEqual(rejections, []);
  });
});
