import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answerer, agreementOf, isDisputed, otherNodes, readList } from './agree.ts';

const said = (url: string, text: string | null) => ({
  url,
  said: text,
  why: text === null ? 'it does not answer' : null,
});
const [A, B, C] = ['a', 'b', 'c'].map((key) => ({ key }));
const agree = (answers: readonly (readonly [ReturnType<typeof said>, Answerer])[]) =>
  agreementOf(
    answers.map(([answer]) => answer),
    (at) => answers[at]![1],
  );

test('nodes agree where two with keys of their own say what the first one says', () => {
  const [own, same, other, silent] = [said('a', '1'), said('b', '1'), said('c', '2'), said('d', null)];
  assert.deepEqual(
    agree([
      [own, A!],
      [same, B!],
      [silent, 'unproven'],
    ]),
    {
      ...{ kind: 'agree', nodes: 2, uncounted: [], others: [] },
      silent: [silent],
    },
  );
  assert.equal(
    agree([
      [own, A!],
      [same, B!],
      [other, C!],
    ]).kind,
    'differ',
  );
  assert.deepEqual(
    agree([
      [own, A!],
      [same, B!],
      [other, C!],
    ]).others,
    [other],
  );
  assert.equal(agree([[own, A!]]).kind, 'alone');
  assert.equal(
    agree([
      [own, A!],
      [silent, B!],
    ]).kind,
    'alone',
  );
  assert.equal(
    agree([
      [said('a', null), A!],
      [same, B!],
    ]).kind,
    'alone',
  );
  assert.equal(agree([]).kind, 'alone');
});

test('nodes are counted by their keys: a URL without a proof, or of a node that is counted, adds none', () => {
  const [own, same, again] = [said('a', '1'), said('b', '1'), said('c', '1')];
  const unproven = agree([
    [own, A!],
    [same, 'unproven'],
    [again, 'unproven'],
  ]);
  assert.deepEqual([unproven.kind, unproven.nodes, unproven.uncounted], ['alone', 1, [same, again]]);
  assert.deepEqual(
    agree([
      [own, A!],
      [same, 'refuted'],
    ]).kind,
    'alone',
  );
  assert.deepEqual(
    agree([
      [own, 'unproven'],
      [same, B!],
    ]).kind,
    'alone',
  );
  assert.deepEqual(
    agree([
      [own, 'unproven'],
      [same, B!],
      [again, C!],
    ]).nodes,
    2,
  );
});

test('who says otherwise counts without a proof, but not where it is not the node that it is said to be', () => {
  const [own, other] = [said('a', '1'), said('b', '2')];
  assert.equal(
    agree([
      [own, A!],
      [other, 'unproven'],
    ]).kind,
    'differ',
  );
  assert.equal(
    agree([
      [own, A!],
      [other, 'refuted'],
    ]).kind,
    'alone',
  );
  assert.deepEqual([isDisputed([own, other]), isDisputed([own, said('b', null)])], [true, false]);
  assert.deepEqual([isDisputed([own]), isDisputed([])], [false, false]);
});

test('other nodes are asked once each, by their origin, and nothing that is no HTTP', () => {
  const urls = [
    'http://b/x',
    'http://b',
    'http://own/',
    'javascript:alert(1)',
    'ftp://c',
    'http://[',
    'https://d',
  ];
  assert.deepEqual(otherNodes('http://own', urls, 5), ['http://b', 'https://d']);
  assert.deepEqual(otherNodes('http://own', urls, 1), ['http://b']);
});

test('a list is what stands between spaces, commas and lines', () => {
  assert.deepEqual(readList(' 0xa, 0xb\n0xa '), ['0xa', '0xb']);
  assert.deepEqual(readList(''), []);
  assert.equal(readList('x'.repeat(201)), undefined);
  assert.equal(readList(Array.from({ length: 51 }, (_, at) => at).join(' ')), undefined);
});
