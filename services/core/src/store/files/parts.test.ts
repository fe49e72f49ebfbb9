import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { BOUNDLESS } from '@skerry/database';
import { until } from '@skerry/kit/testing/until';
import { Parts, type Whole } from './parts.ts';

const HOUR_MS = 3_600_000;
const digit = (n: number) => n.toString(16).padStart(2, '0');
const wholeOf = (n: number, sizeBytes = 10): Whole => ({
  hash: digit(n).repeat(32),
  address: `0x${digit(n >> 2).repeat(20)}`,
  sizeBytes,
});

describe('files that come in parts', () => {
  let directory: string;
  let parts: Parts;
  const open = (now = Date.now) => new Parts({ directory, reserve: BOUNDLESS, now });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'skerry-parts-'));
    parts = open();
  });
  afterEach(() => rm(directory, { recursive: true }));
  const send = (whole: Whole, offset: number, bytes: string) =>
    parts.append(whole, offset, Readable.from([Buffer.from(bytes)]));

  test('a part goes on where the last one ended, also in another process; any other is not read', async () => {
    const whole = wholeOf(0);
    assert.equal(await parts.received(whole), 0);
    assert.equal(await send(whole, 0, 'abcd'), 4);
    parts = open();
    assert.equal(await parts.received(whole), 4);
    for (const offset of [0, 3, 5]) assert.equal(await send(whole, offset, 'XX'), 4);
    assert.equal(await send(whole, 4, 'efghij'), 10);
    assert.equal(await text(parts.read(whole)), 'abcdefghij');
    await parts.remove(whole);
    assert.equal(await parts.received(whole), 0);
  });

  test('what came before a connection broke is kept; more than was announced is refused', async () => {
    const whole = wholeOf(0);
    const broken = async function* () {
      yield Buffer.from('abc');
      throw new Error('gone');
    };
    await assert.rejects(parts.append(whole, 0, Readable.from(broken())), /gone/);
    assert.equal(await parts.received(whole), 3);
    await assert.rejects(send(whole, 3, 'defghijk'), { code: 'FILE_TOO_LARGE' });
    assert.equal(await parts.received(whole), 3);
  });

  test('a process that was frozen in the middle of a part goes on with it, after another one has: each byte is in its place', async () => {
    const whole = wholeOf(0);
    const source = new Readable({ read() {} });
    const frozen = parts.append(whole, 0, source);
    source.push('abc');
    await until(
      'it has begun',
      () => parts.received(whole),
      (received) => received === 3,
    );
    parts = open();
    assert.equal(await send(whole, 3, 'defghij'), 10);
    source.push('def');
    source.push(null);
    assert.equal(await frozen, 6);
    assert.equal(await text(parts.read(whole)), 'abcdefghij');
  });

  test('two parts of one file do not come at once', async () => {
    const source = new Readable({ read() {} });
    const first = parts.append(wholeOf(0), 0, source);
    await assert.rejects(send(wholeOf(0), 0, 'abc'), { code: 'OVERLOADED' });
    source.push('abc');
    source.push(null);
    assert.equal(await first, 3);
  });

  test('an address has four on their way, the node sixty-four; the one that rests longest makes room', async () => {
    for (let n = 0; n < 4; n++) await send(wholeOf(n), 0, 'a');
    await assert.rejects(send({ ...wholeOf(4), address: wholeOf(0).address }, 0, 'a'), {
      code: 'RATE_LIMITED',
    });
    for (let n = 4; n < 64; n++) await send(wholeOf(n), 0, 'a');
    await assert.rejects(send(wholeOf(64), 0, 'a'), { code: 'OVERLOADED' });
    const rests = (Date.now() - HOUR_MS) / 1_000;
    const [, name] = (await readdir(directory)).sort();
    await utimes(join(directory, name!), rests, rests);
    assert.equal(await send(wholeOf(64), 0, 'a'), 1);
    assert.equal(await parts.received(wholeOf(1)), 0);
    assert.equal((await readdir(directory)).length, 64);
    await assert.rejects(send(wholeOf(200, 17 * 1024 ** 3), 0, 'a'), { code: 'OVERLOADED' });
  });

  test('what nobody sends on goes after a day', async () => {
    await send(wholeOf(0), 0, 'a');
    parts = open(() => Date.now() + 25 * HOUR_MS);
    await send(wholeOf(1), 0, 'a');
    assert.equal(await parts.received(wholeOf(0)), 0);
    assert.equal((await readdir(directory)).length, 1);
  });
});
