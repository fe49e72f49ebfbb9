import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { encodeQmpCommand, parseQmpLine, QmpParser } from './qmp-bytes.ts';

const conversation = [
  '{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": ["oob"]}}',
  '{"return": {}, "id": 1}',
  '{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "VSERPORT_CHANGE", "data": {"open": true, "id": "ready"}}',
  '{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "STOP"}',
  '{"id": 2, "error": {"class": "CommandNotFound", "desc": "The command é does not exist"}}',
  '{"error": {"class": "GenericError", "desc": "QMP input must be a JSON object"}}',
];
const expected = [
  { kind: 'greeting' },
  { kind: 'result', id: 1, value: {} },
  { kind: 'event', name: 'VSERPORT_CHANGE', data: { open: true, id: 'ready' } },
  { kind: 'event', name: 'STOP', data: {} },
  { kind: 'error', id: 2, description: 'The command é does not exist' },
  { kind: 'error', id: undefined, description: 'QMP input must be a JSON object' },
];

describe('QmpParser', () => {
  const bytes = Buffer.from(`${conversation.join('\r\n')}\r\n`);

  test('the same messages, however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 30 }), (cuts) => {
        const parser = new QmpParser();
        const edges = [0, ...cuts.toSorted((one, other) => one - other), bytes.length];
        const messages = edges
          .slice(1)
          .flatMap((edge, index) => parser.push(bytes.subarray(edges[index], edge)));
        assert.deepEqual(messages, expected);
      }),
    );
  });

  test('what is not QMP is refused, never something else than our error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
        try {
          parseQmpLine(line);
        } catch (error) {
          assert.ok(error instanceof AppError && error.code === 'INTERNAL');
        }
      }),
    );
  });
});

test('a command is one line that JSON reads', () => {
  fc.assert(
    fc.property(fc.nat(), fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (id, execute, args) => {
      const line = encodeQmpCommand(id, execute, args);
      assert.equal(line.indexOf('\n'), line.length - 1);
      assert.deepEqual(JSON.parse(line), JSON.parse(JSON.stringify({ execute, arguments: args, id })));
    }),
  );
});
