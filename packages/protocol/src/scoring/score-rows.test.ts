import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readScoreRows } from './score-rows.ts';

const [ONE, OTHER] = ['a'.repeat(64), 'b'.repeat(64)] as const;

test('a row in another form is left out and named; a wrong field of one that counts is absent', () => {
  const measurements = { total_nodes: 3, nodes_with_identical_asn: 1, record_count: 9, total_score: 0.7 };
  const whole = { node_id: ONE, total_score: 0.5, decentralization: 0.25, measurements };
  const wrong = {
    ...{ node_id: OTHER, total_score: 1, decentralization: 7, status: {}, codes: [1_006, 'x', 0.5] },
    measurements: { total_nodes: -1, nodes_with_identical_asn: '1', record_count: null, total_score: 2 },
  };
  const crn = [
    { ...whole, status: 'active', codes: [1_001], unknown: 1 },
    { ...whole, node_id: ONE.toUpperCase() },
    { ...whole, node_id: OTHER, total_score: 1.5 },
    ...[null, 'x', []],
    wrong,
    whole,
  ];
  const rows = readScoreRows({ ccn: [{ ...whole, codes: 'x', status: 5 }], crn });
  assert.deepEqual(rows.ccn, [whole]);
  assert.deepEqual(rows.crn, [
    { ...whole, status: 'active', codes: [1_001] },
    {
      ...{ node_id: OTHER, total_score: 1, decentralization: null, status: null, codes: [1_006] },
      measurements: {
        total_nodes: null,
        nodes_with_identical_asn: null,
        record_count: 1,
        total_score: null,
      },
    },
  ]);
  const unnamed = 'its node_id is not 64 lower-case hexadecimal digits';
  assert.deepEqual(
    rows.odd.map(({ at, node_id: id, why }) => [at, id, why]),
    [
      ['crn[1]', null, unnamed],
      ['crn[2]', OTHER, 'its total_score is not a number from 0 to 1'],
      ...['crn[3]', 'crn[4]', 'crn[5]'].map((at) => [at, null, unnamed]),
      ['crn[7]', ONE, 'an earlier row has the same node_id'],
    ],
  );
});

test('what is no list is named, and hides not the other one; nothing throws', () => {
  const { ccn, crn, odd } = readScoreRows({ crn: [{ node_id: ONE, total_score: 0 }] });
  assert.deepEqual([ccn.length, crn.length], [0, 1]);
  assert.deepEqual(odd, [{ at: 'ccn', node_id: null, why: 'it is not a list' }]);
  fc.assert(fc.property(fc.anything(), (value) => void readScoreRows(value)));
  fc.assert(fc.property(fc.array(fc.anything()), (ccn) => void readScoreRows({ ccn, crn: ccn })));
});
