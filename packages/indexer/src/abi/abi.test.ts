import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { encodeAbiParameters, encodeEventTopics, toEventSelector } from 'viem';
import { parseAbi, parseDeclaration } from './declaration.ts';
import { createEventDecoder } from './decode.ts';
import { hashText, topicOf } from './topic.ts';
import {
  ABI_LIMITS,
  declarationOf,
  type EventDefinition,
  isHashedWhenIndexed,
  signatureOf,
} from './types.ts';

const TRANSFER = 'event Transfer(address indexed from, address indexed to, uint256 value)';

describe('declarations', () => {
  test('a text and a JSON item of the same event are the same', () => {
    const [json] = parseAbi([
      { type: 'function', name: 'f' },
      {
        type: 'event',
        name: 'Filled',
        anonymous: false,
        inputs: [
          { name: 'id', type: 'bytes32', indexed: true },
          {
            name: 'order',
            type: 'tuple[2][]',
            indexed: false,
            components: [
              { name: 'maker', type: 'address' },
              { name: '', type: 'uint8' },
            ],
          },
        ],
      },
    ]);
    const text = 'event Filled(bytes32 indexed id, (address maker, uint8 arg1)[2][] order)';
    assert.deepEqual(json, parseDeclaration(text));
    assert.equal(declarationOf(json!), text);
    assert.equal(signatureOf(json!), 'Filled(bytes32,(address,uint8)[2][])');
  });

  test('spaces, missing names, short integers, anonymous, nothing in the parentheses', () => {
    const event = parseDeclaration('  Named ( uint indexed , int8 b,tuple(bool x) c )  anonymous ; ');
    assert.equal(declarationOf(event), 'event Named(uint256 indexed arg0, int8 b, (bool x) c) anonymous');
    assert.equal(declarationOf(parseDeclaration('Ping()')), 'event Ping()');
    assert.equal(topicOf(parseDeclaration(TRANSFER)), toEventSelector(TRANSFER));
  });

  for (const bad of [
    '',
    'Transfer',
    'event 1(uint256 a)',
    'event A(uint257 a)',
    'event A(bytes33 a)',
    'event A(uint256 a, uint256 a)',
    'event A(uint256[0] a)',
    'event A(uint256[2 a)',
    'event A((uint256 a)',
    'event A(() a)',
    'event A(mapping(address=>uint) a)',
    'event A(uint indexed a, uint indexed b, uint indexed c, uint indexed d)',
    `event A(${'abcdefghijklmnopqrst'.replaceAll(/./g, (one) => `, uint ${one.repeat(128)}`).slice(2)})`,
    `event A(${'('.repeat(12)}uint256 a${')'.repeat(12)} a)`,
    `event A(uint256${'[]'.repeat(12)} a)`,
  ])
    test(`refused: ${bad.slice(0, 60)}`, () => {
      assert.throws(() => parseDeclaration(bad), { code: 'INVALID_ABI' });
    });

  test('no run of characters takes longer than its length, wherever it stands', () => {
    const startUs = process.cpuUsage().user;
    for (const one of [' ', '\n', 'a', '(', ')', '[', ',', ' ,', 'event ', 'indexed '])
      for (const [before, after] of [
        ['', ''],
        ['', 'x'],
        ['a()', 'x'],
        ['a() anonymous', 'x'],
        ['event', '('],
        ['event a', 'b()'],
        ['a(uint256', 'b c)'],
        ['a((uint256 b)', 'c d)'],
        ['a(uint256 b', ')'],
        ['a(', ')'],
      ] as const)
        try {
          parseDeclaration(before + one.repeat(4_000 / one.length) + after);
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'INVALID_ABI');
        }
    // Together far less than a second: one that grows with the square or cube of the length takes several by itself.
    const spentMs = (process.cpuUsage().user - startUs) / 1_000;
    assert.ok(spentMs < 5_000, `${spentMs} ms`);
  });

  test('what is no ABI is refused, whatever it is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.array(fc.string())), (value) => {
        try {
          parseAbi(value);
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'INVALID_ABI');
        }
      }),
    );
  });
});

const sized = (kind: 'uint' | 'int') => fc.integer({ min: 1, max: 32 }).map((bytes) => `${kind}${bytes * 8}`);
const typeText: fc.Arbitrary<string> = fc.letrec<{ type: string }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.oneof(
      sized('uint'),
      sized('int'),
      fc.integer({ min: 1, max: 32 }).map((size) => `bytes${size}`),
      fc.constantFrom('address', 'bool', 'bytes', 'string'),
    ),
    tie('type').map((of) => `${of}[]`),
    fc.tuple(tie('type'), fc.integer({ min: 1, max: 3 })).map(([of, length]) => `${of}[${length}]`),
    fc
      .array(tie('type'), { minLength: 1, maxLength: 3 })
      .map((types) => `(${types.map((type, index) => `${type} f${index}`).join(', ')})`),
  ),
})).type;

type Type = EventDefinition['parameters'][number]['type'];

/** A value as the encoder takes it, and what we should read. */
function valuesOf(type: Type): fc.Arbitrary<readonly [unknown, unknown]> {
  switch (type.kind) {
    case 'uint':
      return fc
        .bigInt(0n, 2n ** BigInt(type.bits) - 1n)
        .map((n) => [type.bits <= 48 ? Number(n) : n, String(n)]);
    case 'int': {
      const half = 2n ** BigInt(type.bits - 1);
      return fc.bigInt(-half, half - 1n).map((n) => [type.bits <= 48 ? Number(n) : n, String(n)]);
    }
    case 'address':
      return hexOf(20, 20);
    case 'bool':
      return fc.boolean().map((value) => [value, value]);
    case 'fixed_bytes':
      return hexOf(type.sizeBytes, type.sizeBytes);
    case 'bytes':
      return hexOf(0, 70);
    case 'string':
      return fc
        .string({ unit: 'grapheme', maxLength: 40 })
        .map((text) => [text, text.includes('\0') ? `0x${Buffer.from(text).toString('hex')}` : text]);
    case 'array': {
      const lengths =
        type.length === null ? { maxLength: 3 } : { minLength: type.length, maxLength: type.length };
      return fc
        .array(valuesOf(type.of), lengths)
        .map((pairs) => [pairs.map(([given]) => given), pairs.map(([, read]) => read)]);
    }
    case 'tuple':
      return fc
        .tuple(...type.fields.map((field) => valuesOf(field.type)))
        .map((pairs) => [
          Object.fromEntries(pairs.map(([given], index) => [type.fields[index]!.name, given])),
          Object.fromEntries(pairs.map(([, read], index) => [type.fields[index]!.name, read])),
        ]);
  }
}

const hexOf = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((bytes) => {
    const hex = `0x${Buffer.from(bytes).toString('hex')}`;
    return [hex, hex] as const;
  });

const jsonParameter = (name: string, type: Type, indexed = false): Record<string, unknown> => {
  if (type.kind === 'array') {
    const of = jsonParameter(name, type.of, indexed);
    return { ...of, type: `${of.type}[${type.length ?? ''}]` };
  }
  if (type.kind === 'tuple')
    return {
      name,
      indexed,
      type: 'tuple',
      components: type.fields.map((field) => jsonParameter(field.name, field.type)),
    };
  const text = signatureOf({ name: '', anonymous: false, parameters: [{ name, type, indexed }] }).slice(
    1,
    -1,
  );
  return { name, indexed, type: text };
};

describe('decoding', () => {
  test('reads what a known encoder wrote, for every type', () => {
    const eventAndValues = fc
      .array(fc.tuple(typeText, fc.boolean()), { maxLength: 4 })
      .map((types) => {
        let topics = 0;
        const list = types.map(
          ([type, indexed], index) => `${type}${indexed && ++topics <= 3 ? ' indexed' : ''} a${index}`,
        );
        return parseDeclaration(`event E(${list.join(', ')})`);
      })
      .chain((event) =>
        fc.tuple(fc.constant(event), fc.tuple(...event.parameters.map(({ type }) => valuesOf(type)))),
      );
    fc.assert(
      fc.property(eventAndValues, ([event, values]) => {
        const item = {
          type: 'event',
          name: 'E',
          inputs: event.parameters.map(({ name, type, indexed }) => jsonParameter(name, type, indexed)),
        } as const;
        const inData = event.parameters.map(({ indexed }) => !indexed);
        const data = encodeAbiParameters(
          item.inputs.filter((_, index) => inData[index]) as never,
          values.filter((_, index) => inData[index]).map(([given]) => given) as never,
        );
        // The encoder can make topics of elementary types and of hashed text and bytes.
        const hashedTuple = event.parameters.some(
          ({ indexed, type }) => indexed && (type.kind === 'array' || type.kind === 'tuple'),
        );
        const hash = `0x${'ab'.repeat(32)}`;
        const topics = hashedTuple
          ? event.parameters
              .filter(({ indexed }) => indexed)
              .map(({ type }, index) =>
                isHashedWhenIndexed(type)
                  ? hash
                  : encodeAbiParameters(
                      [item.inputs.filter((one) => one.indexed)[index]] as never,
                      [
                        values[
                          event.parameters.indexOf(event.parameters.filter((p) => p.indexed)[index]!)
                        ]![0],
                      ] as never,
                    ),
              )
          : (
              encodeEventTopics({
                abi: [item] as never,
                eventName: 'E',
                args: Object.fromEntries(
                  event.parameters.flatMap(({ name, indexed }, index) =>
                    indexed ? [[name, values[index]![0]]] : [],
                  ),
                ),
              } as never) as string[]
            ).slice(1);
        const text = createEventDecoder(event).decode(topics, data);
        assert.ok(text !== undefined);
        const read = JSON.parse(text) as Record<string, unknown>;
        event.parameters.forEach(({ name, type, indexed }, index) => {
          if (indexed && isHashedWhenIndexed(type)) assert.match(read[name] as string, /^0x[0-9a-f]{64}$/);
          else assert.deepEqual(read[name], values[index]![1]);
        });
      }),
      { numRuns: 300 },
    );
  });

  const word = (value: string) => value.padStart(64, '0');
  const decoder = createEventDecoder(
    parseDeclaration('event E(address a, bool b, uint8 c, int8 d, bytes2 e)'),
  );
  const good = ['ff'.repeat(20), '1', 'ff', `${'f'.repeat(63)}e`, `abcd${'0'.repeat(60)}`].map(word);

  test('padding has to be what an encoder writes', () => {
    assert.equal(
      decoder.decode([], `0x${good.join('')}`),
      `{"a":"0x${'ff'.repeat(20)}","b":true,"c":"255","d":"-2","e":"0xabcd"}`,
    );
    const bad = ['1'.repeat(64), '2', '100', `${'0'.repeat(62)}80`, `${'ab'.repeat(32)}`].map(word);
    good.forEach((_, place) => {
      const words = good.map((one, index) => (index === place ? bad[index]! : one));
      assert.equal(decoder.decode([], `0x${words.join('')}`), undefined, `word ${place}`);
    });
    assert.equal(decoder.decode([], `0x${good.join('').slice(2)}`), undefined);
    assert.equal(decoder.decode([`0x${word('1')}`], `0x${good.join('')}`), undefined);
  });

  test('offsets that point at each other end', () => {
    const bomb = createEventDecoder(parseDeclaration('event E(uint256[][][][][][] a)'));
    const size = 512;
    const words = Array.from({ length: size }, () => word('20'));
    assert.equal(bomb.decode([], `0x${words.join('')}`), undefined);
  });

  test('what many offsets share is not unfolded again and again: the log is kept as it came', () => {
    const hex = (value: number) => word(value.toString(16));
    const sharing = (offsets: number, shared: string): string =>
      `0x${hex(32)}${hex(offsets)}${hex(offsets * 32).repeat(offsets)}${shared}`;
    const long = sharing(3_000, hex(100_000) + '61'.repeat(100_000));
    const list = sharing(256, hex(255) + hex(7).repeat(255));
    for (const [type, data] of [
      ['bytes[]', long],
      ['string[]', long],
      ['uint256[][]', list],
    ] as const) {
      const decoder = createEventDecoder(parseDeclaration(`event E(${type} a)`));
      // Compared here: whatever differs would be printed, and is long.
      assert.ok(decoder.decode([], data) === undefined, type);
    }
    const once = createEventDecoder(parseDeclaration('event E(bytes[] a)'));
    const length = 3_000_000;
    const text = once.decode([], sharing(1, hex(length) + '61'.repeat(length)));
    assert.equal(text?.length, '{"a":["0x"]}'.length + 2 * length);
  });

  test('names that are far longer than what they name are not repeated without end', () => {
    const name = (letter: string) => letter.repeat(ABI_LIMITS.nameChars);
    let type = `(bool ${name('a')})`;
    for (const letter of 'bcdefg') type = `(${type} ${name(letter)})`;
    const decoder = createEventDecoder(parseDeclaration(`event E(${type}[] a)`));
    const of = (count: number) => `0x${word('20')}${word(count.toString(16))}${word('1').repeat(count)}`;
    assert.ok(decoder.decode([], of(1)) !== undefined);
    assert.ok(decoder.decode([], of(1_000)) === undefined);
  });

  test('no bytes make it throw', () => {
    const decoders = [
      'E(string a, bytes[] b)',
      'E((uint8 x, string y)[] a)',
      'E(int24[3][] a, bool indexed b)',
    ].map((text) => createEventDecoder(parseDeclaration(text)));
    const small = fc.integer({ min: 0, max: 400 }).map((n) => word(n.toString(16)));
    const any = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((b) => Buffer.from(b).toString('hex'));
    fc.assert(
      fc.property(fc.array(fc.oneof(small, any), { maxLength: 20 }), (words) => {
        for (const one of decoders)
          for (const topics of [[], [`0x${word('1')}`]]) {
            const text = one.decode(topics, `0x${words.join('')}`);
            if (text !== undefined) JSON.parse(text);
          }
      }),
    );
  });

  test('text that is not UTF-8, or holds NUL, is given as bytes', () => {
    const one = createEventDecoder(parseDeclaration('event E(string a)'));
    for (const [hex, expected] of [
      ['ff', '0xff'],
      ['610062', '0x610062'],
      ['c3a4', 'ä'],
    ] as const) {
      const length = word((hex.length / 2).toString(16));
      const text = one.decode([], `0x${word('20')}${length}${hex.padEnd(64, '0')}`);
      assert.deepEqual(JSON.parse(text!), { a: expected });
    }
    assert.equal(hashText('a').length, 66);
  });
});
