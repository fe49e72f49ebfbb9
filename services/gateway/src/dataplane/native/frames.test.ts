import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { changeFrames, FrameReader, frame, writeIpv6 } from './frames.ts';

const bytesOf = (address: string) => {
  const bytes = Buffer.alloc(20, 0xee);
  writeIpv6(address, bytes, 2);
  assert.deepEqual([bytes[0], bytes[1], bytes[18], bytes[19]], [0xee, 0xee, 0xee, 0xee], address);
  return [...bytes.subarray(2, 18)];
};

describe('frames to and from the native plane', () => {
  test('addresses in every spelling', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 }), (parts) => {
        const groups = parts.map((part) => (part % 3 ? 0 : part));
        const plain = groups.map((part) => part.toString(16)).join(':');
        const expected = groups.flatMap((part) => [part >> 8, part & 0xff]);
        // As RFC 5952 writes it, with its longest run of zeros left out.
        const short = new URL(`http://[${plain}]`).hostname.slice(1, -1);
        for (const text of [plain, plain.toUpperCase(), short])
          assert.deepEqual(bytesOf(text), expected, text);
      }),
    );
    const zeros = (count: number) => Array.from({ length: count }, () => 0);
    assert.deepEqual(bytesOf('::'), zeros(16));
    assert.deepEqual(bytesOf('1::'), [0, 1, ...zeros(14)]);
    assert.deepEqual(bytesOf('::ffff:127.0.0.2'), [...zeros(10), 255, 255, 127, 0, 0, 2]);
    assert.deepEqual(bytesOf('64:ff9b::192.0.2.33'), [0, 0x64, 0xff, 0x9b, ...zeros(8), 192, 0, 2, 33]);
  });

  test('are read however the stream is cut', () => {
    const all = Buffer.concat([frame('P', Buffer.from('one')), frame('C'), frame('B', Buffer.alloc(70_000))]);
    fc.assert(
      fc.property(fc.array(fc.nat(all.length), { maxLength: 6 }), (cuts) => {
        const reader = new FrameReader();
        const places = [0, ...cuts.sort((a, b) => a - b), all.length];
        const read = places.slice(1).flatMap((end, i) => reader.push(all.subarray(places[i], end)));
        assert.deepEqual(
          read.map(({ type, payload }) => [type, payload.length]),
          [
            ['P', 3],
            ['C', 0],
            ['B', 70_000],
          ],
        );
      }),
    );
  });

  test('many changes go in frames of a bounded size', () => {
    const changes = Array.from({ length: 20_000 }, (_, i) => ({
      hostname: `name-${i}.example`,
      ipv6: '2001:db8::1',
    }));
    const frames = [...changeFrames(changes)];
    assert.ok(frames.length > 1 && frames.every(({ length }) => length < 300_000));
  });
});
