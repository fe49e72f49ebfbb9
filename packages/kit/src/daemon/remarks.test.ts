import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Remarks } from './remarks.ts';

test('what is wrong is said when it is new, and again once it was well in between', () => {
  const said: unknown[] = [];
  const remarks = new Remarks({ warn: (fields: object) => said.push(fields) } as never);
  const round = (...found: readonly number[]) => {
    const remark = remarks.begin();
    for (const n of found) remark({ n }, 'it is wrong');
    return said.splice(0).map((fields) => (fields as { n: number }).n);
  };
  assert.deepEqual(round(1, 2, 2), [1, 2]);
  assert.deepEqual(round(2, 1, 3), [3]);
  assert.deepEqual(round(3), []);
  assert.deepEqual(round(1, 3), [1]);
});
