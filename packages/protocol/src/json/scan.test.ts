import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../errors.ts';
import { checkJsonDepth, scanJson, scanJsonObject } from './scan.ts';

const refused = (text: string | Uint8Array) => {
  assert.throws(
    () => scanJsonObject(text),
    (error) => error instanceof AppError && error.code === 'INVALID_JSON',
    String(text),
  );
};

describe('scanJsonObject', () => {
  test('gives the exact text of each member', () => {
    const { value, rawMembers } = scanJsonObject('{ "a" : {"x": 1,\n "y":[ ]} ,"b":"\\u00e9" }');
    assert.deepEqual(value, { a: { x: 1, y: [] }, b: 'é' });
    assert.equal(rawMembers.get('a'), '{"x": 1,\n "y":[ ]}');
    assert.equal(rawMembers.get('b'), '"\\u00e9"');
  });

  test('refuses what is not one acceptable object', () => {
    const bad = [
      '',
      ' ',
      '[]',
      '1',
      'null',
      '{',
      '{}{}',
      '{"a":1,}',
      '{"a"}',
      '{a:1}',
      "{'a':1}",
      '{"a":01}',
      '{"a":1.}',
      '{"a":+1}',
      '{"a":NaN}',
      '{"a":1e999}',
      '{"a":"\t"}',
      '{"a":"\\x"}',
      '{"a":"',
      '{"a":tru}',
      '{"a":1 "b":2}',
      '\u{feff}{}',
    ];
    for (const text of bad) refused(text);
  });

  test('refuses what another reader could see differently, and what no database can keep', () => {
    refused('{"a":1,"a":2}');
    refused('{"a":{"b":1,"\\u0062":2}}');
    refused('{"__proto__":{}}');
    refused('{"a":[{"__proto__":1}]}');
    refused('{"a":"\\u0000"}');
    refused('{"\\u0000":1}');
    refused('{"a":"\\ud800"}');
    refused(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d));
    refused(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`);
  });

  test('accepts every object that JSON.stringify makes of clean text, and returns the same value', () => {
    const key = fc
      .string({ unit: 'grapheme' })
      .filter((text) => text !== '__proto__' && !text.includes('\0'));
    const leaf = fc.oneof(
      fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0')),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(key, tree), fc.integer({ min: 0, max: 4 }), (object, indent) => {
        const text = JSON.stringify(object, null, indent);
        assert.deepEqual(scanJsonObject(text).value, JSON.parse(text));
      }),
    );
  });

  test('agrees with JSON.parse on validity, or is stricter; never throws anything else (fuzz)', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '1',
      '-',
      '.',
      'e',
      'true',
      'null',
      ' ',
      '\n',
      '\\u',
      '\\ud83d',
      '\0',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = pieces.join('');
        let scanned: unknown;
        try {
          scanned = scanJsonObject(text).value;
        } catch (error) {
          assert.ok(error instanceof AppError && error.code === 'INVALID_JSON');
          return;
        }
        assert.deepEqual(scanned, JSON.parse(text));
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          scanJsonObject(bytes);
        } catch (error) {
          assert.ok(error instanceof AppError && error.code === 'INVALID_JSON');
        }
      }),
    );
  });

  test('how deep text may be is the same where only that is checked', () => {
    const isRefused = (check: (text: string) => void, text: string) => {
      try {
        check(text);
        return false;
      } catch (error) {
        assert.ok(error instanceof AppError && error.code === 'INVALID_JSON');
        return true;
      }
    };
    const pairs = [
      ['[', ']'],
      ['[ ', ' ]'],
      ['{"[":', '}'],
      ['[1,{"a":', '}]'],
    ] as const;
    for (const [open, close] of pairs)
      for (const inner of ['1', '""', '"]"', '"\\"["', '[]', '{ }', '[1]'])
        for (const levels of [31, 32, 62, 63, 64, 65]) {
          const text = open.repeat(levels) + inner + close.repeat(levels);
          assert.equal(isRefused(checkJsonDepth, text), isRefused(scanJson, text), text);
        }
    for (const text of ['', '"', '"\\', ']', '[}]', '"[']) checkJsonDepth(text);
    assert.ok(isRefused(checkJsonDepth, '['.repeat(1_000_000)));
  });

  test('a megabyte of nesting or of one string costs no more than its length', () => {
    refused(`{"a":${'['.repeat(1_000_000)}`);
    assert.equal(scanJsonObject(`{"a":"${'x'.repeat(1_000_000)}"}`).value.a, 'x'.repeat(1_000_000));
  });
});

test('scanJson takes any one value by the same rules', () => {
  for (const text of ['1', ' "x" ', 'null', '[{"a":1}]']) scanJson(text);
  for (const text of [
    '',
    '1 2',
    '[1,]',
    '[{"a":1,"a":1}]',
    '"\\u0000"',
    '1e999',
    `${'['.repeat(500)}${']'.repeat(500)}`,
  ])
    assert.throws(() => scanJson(text), { code: 'INVALID_JSON' }, text);
});
