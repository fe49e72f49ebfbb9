import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { parseAskedBytes, rangeWithin } from '../../store/ipfs/car/byte-range.ts';
import { readAsked } from './asked.ts';

const CAR = 'application/vnd.ipld.car';
const RAW = 'application/vnd.ipld.raw';
const codeOf = (act: () => unknown) => {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return undefined;
};

test('the form that is asked for: format goes before Accept, and the best of Accept counts', () => {
  const forms: [Parameters<typeof readAsked>[0], string | undefined, string][] = [
    [{}, undefined, 'file'],
    [{}, '*/*', 'file'],
    [{}, 'text/html,application/xhtml+xml,*/*;q=0.8', 'file'],
    [{}, RAW, 'raw'],
    [{}, `${CAR}; version=1; order=dfs; dups=n`, 'car'],
    [{}, `${CAR};order=unk, ${RAW};q=0.5`, 'car'],
    [{}, `${CAR};order=bfs, ${RAW};q=0.5`, 'raw'],
    [{}, `${CAR};dups=y, ${CAR};q=0.1`, 'car'],
    [{}, `${RAW};q=0, */*`, 'file'],
    [{ 'car-dups': 'n' }, `${CAR};dups=y`, 'car'],
    [{ format: 'raw' }, CAR, 'raw'],
    [{ format: 'car' }, 'text/html', 'car'],
    [{ format: 'car' }, `${CAR};dups=y`, 'car'],
  ];
  for (const [query, accept, form] of forms)
    assert.equal(readAsked(query, accept).form, form, `${JSON.stringify(query)} ${accept}`);
  for (const accept of [
    `${CAR};version=2`,
    `${CAR};dups=y`,
    'application/vnd.ipfs.ipns-record',
    'application/x-tar',
  ])
    assert.equal(
      codeOf(() => readAsked({}, accept)),
      'NOT_ACCEPTABLE',
      accept,
    );
});

test('what is for a CAR is refused with another form; a part of a file is of the entity', () => {
  assert.deepEqual(readAsked({ format: 'car' }, undefined), { form: 'car', scope: 'all', bytes: undefined });
  assert.deepEqual(readAsked({ format: 'car', 'entity-bytes': '-5:*' }, undefined), {
    form: 'car',
    scope: 'entity',
    bytes: { from: -5, to: undefined },
  });
  for (const query of [
    { 'dag-scope': 'block' },
    { format: 'raw', 'entity-bytes': '0:1' },
    { format: 'car', 'dag-scope': 'all', 'entity-bytes': '0:1' },
  ] as const)
    assert.equal(
      codeOf(() => readAsked(query, undefined)),
      'INVALID_PARAMETERS',
    );
});

test('a byte range counts from both ends, and is cut to the file', () => {
  const cases: [string, number, [number, number] | undefined][] = [
    ['0:*', 10, [0, 9]],
    ['0:0', 10, [0, 0]],
    ['3:100', 10, [3, 9]],
    ['-4:*', 10, [6, 9]],
    ['-40:*', 10, [0, 9]],
    ['4:-2', 10, [4, 8]],
    ['8:-5', 10, undefined],
    ['10:*', 10, undefined],
    ['0:*', 0, undefined],
  ];
  for (const [text, size, range] of cases)
    assert.deepEqual(
      rangeWithin(parseAskedBytes(text), size),
      range && { first: range[0], last: range[1] },
      text,
    );
  for (const text of ['', ':', '1', '5:2', '-2:-5', '*:*', '1:2:3', '0x1:2', '1.5:2', `${'9'.repeat(16)}:*`])
    assert.equal(
      codeOf(() => parseAskedBytes(text)),
      'INVALID_PARAMETERS',
      text,
    );
});

test('whatever strangers ask for, the answer is a form or a refusal, and a range lies in the file', () => {
  const part = fc.oneof(fc.string(), fc.stringMatching(/^-?\d{0,16}:(-?\d{0,16}|\*)$/));
  fc.assert(
    fc.property(part, fc.nat(1_000_000), (text, size) => {
      const code = codeOf(() => parseAskedBytes(text));
      if (code) return code === 'INVALID_PARAMETERS';
      const range = rangeWithin(parseAskedBytes(text), size);
      return !range || (range.first >= 0 && range.first <= range.last && range.last < size);
    }),
    { numRuns: 2_000 },
  );
  const accept = fc.array(
    fc.oneof(
      fc.string(),
      fc.constantFrom(RAW, `${CAR};order=dfs`, '*/*', ';q=0.3', 'application/vnd.ipfs.x'),
    ),
  );
  fc.assert(
    fc.property(accept, (parts) => {
      const code = codeOf(() => readAsked({}, parts.join(',')));
      return code === undefined || code === 'NOT_ACCEPTABLE';
    }),
    { numRuns: 2_000 },
  );
});
