import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { prefersJson } from '../accept.ts';
import { decideRead, dispositionOf, parseRange } from './storage-conditions.ts';

const ETAG = '"abc"';

test('one range; what is not one is ignored; what lies beyond the end is refused (RFC 9110, section 14)', () => {
  const cases: [string, number, unknown][] = [
    ['bytes=0-0', 10, { first: 0, last: 0 }],
    ['bytes=2-', 10, { first: 2, last: 9 }],
    ['bytes=2-5', 10, { first: 2, last: 5 }],
    ['bytes=2-99', 10, { first: 2, last: 9 }],
    ['bytes=-3', 10, { first: 7, last: 9 }],
    ['bytes=-99', 10, { first: 0, last: 9 }],
    ['BYTES = 1-1', 10, { first: 1, last: 1 }],
    ['bytes=10-', 10, 'unsatisfiable'],
    ['bytes=-0', 10, 'unsatisfiable'],
    ['bytes=0-', 0, 'unsatisfiable'],
    ['bytes=-5', 0, 'unsatisfiable'],
    ['bytes=5-2', 10, undefined],
    ['bytes=0-1,3-4', 10, undefined],
    ['bytes=', 10, undefined],
    ['bytes=-', 10, undefined],
    ['bytes=a-b', 10, undefined],
    ['bytes=1--2', 10, undefined],
    ['lines=0-1', 10, undefined],
    [`bytes=${'9'.repeat(400)}-`, 10, undefined],
  ];
  for (const [header, size, expected] of cases) assert.deepEqual(parseRange(header, size), expected, header);
  const piece = fc.constantFrom('bytes', '=', '-', ',', '0', '7', '99', ' ', 'x');
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string())), fc.nat(200), (pieces, size) => {
      const range = parseRange(pieces.join(''), size);
      if (range === undefined || range === 'unsatisfiable') return;
      assert.ok(0 <= range.first && range.first <= range.last && range.last < size);
    }),
  );
});

test('conditions come in their order (RFC 9110, section 13.2.2)', () => {
  const part = { kind: 'part', range: { first: 1, last: 2 } };
  const range = 'bytes=1-2';
  const cases: [Parameters<typeof decideRead>[0], unknown][] = [
    [{ method: 'GET' }, { kind: 'whole' }],
    [{ method: 'GET', range }, part],
    [{ method: 'HEAD', range }, { kind: 'whole' }],
    [{ method: 'GET', range, ifRange: ETAG }, part],
    [{ method: 'GET', range, ifRange: '"other"' }, { kind: 'whole' }],
    [{ method: 'GET', range, ifRange: `W/${ETAG}` }, { kind: 'whole' }],
    [{ method: 'GET', range, ifRange: 'Sat, 29 Oct 1994 19:43:31 GMT' }, { kind: 'whole' }],
    [{ method: 'GET', range: 'bytes=10-' }, { kind: 'unsatisfiable' }],
    [{ method: 'GET', range: 'bytes=10-', ifRange: '"other"' }, { kind: 'whole' }],
    [{ method: 'GET', range, ifNoneMatch: ETAG }, { kind: 'not modified' }],
    [{ method: 'HEAD', ifNoneMatch: `"x", W/${ETAG}` }, { kind: 'not modified' }],
    [{ method: 'GET', ifNoneMatch: '*' }, { kind: 'not modified' }],
    [{ method: 'GET', ifNoneMatch: '"x"' }, { kind: 'whole' }],
    [{ method: 'GET', ifMatch: ETAG, ifNoneMatch: '"x"' }, { kind: 'whole' }],
    [{ method: 'GET', ifMatch: `W/${ETAG}` }, { kind: 'other version' }],
    [{ method: 'GET', ifMatch: '"x"', ifNoneMatch: ETAG }, { kind: 'other version' }],
  ];
  for (const [request, expected] of cases)
    assert.deepEqual(decideRead(request, ETAG, 10), expected, JSON.stringify(request));
});

test('JSON only where it is asked for first', () => {
  const yes: (string | undefined)[] = [
    'application/json',
    'application/json, text/plain, */*',
    'text/html;q=0.5, application/json',
    'Application/JSON; charset=utf-8',
    'application/json;q=0.3, text/html;q=0',
  ];
  const no: (string | undefined)[] = [
    undefined,
    '',
    '*/*',
    'application/*',
    'text/html, application/json',
    'application/json;q=0.5, text/html',
    'application/json;q=0',
    'application/json;q=x',
    'application/jsonx',
    ',;,',
  ];
  for (const accept of yes) assert.equal(prefersJson(accept), true, `${accept}`);
  for (const accept of no) assert.equal(prefersJson(accept), false, `${accept}`);
  fc.assert(fc.property(fc.string(), (accept) => typeof prefersJson(accept) === 'boolean'));
});

test('what can run something is offered for saving', () => {
  for (const inert of ['image/png', 'video/mp4', 'audio/ogg', 'text/plain', 'application/json'])
    assert.equal(dispositionOf(inert), 'inline', inert);
  for (const other of [
    'text/html',
    'image/svg+xml',
    'application/xml',
    'text/xml',
    'application/xhtml+xml',
    'text/javascript',
    'application/pdf',
    'application/octet-stream',
    'x/y',
  ])
    assert.equal(dispositionOf(other), 'attachment', other);
});
