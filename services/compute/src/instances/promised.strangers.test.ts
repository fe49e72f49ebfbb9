import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CAPACITY } from '../host/capacity.ts';
import { decideAdmission, promisedTo } from './admission.ts';
import { newRecord } from './record/record.ts';
import { needOf } from './wanted.ts';

const wanted = {
  isRunning: true,
  restartId: null,
  ...{ cpu: 4, memoryMib: 4_096, diskGib: 100 },
  image: 'c'.repeat(64),
  sshKey: 'k',
  allowedPorts: [],
};
const capacity = needOf(wanted);
const fresh = newRecord('a'.repeat(64), wanted, 1);
const failed = (code: string) => ({ ...fresh, failure: { code, message: 'x' } });
const refusalBeside = (record: typeof fresh) =>
  decideAdmission(capacity, [promisedTo(record)], capacity)?.code;

test('S5: a machine whose image is none keeps nobody out of the node that it was sent to', () => {
  assert.equal(refusalBeside(fresh), 'NO_CAPACITY');
  assert.equal(refusalBeside(failed('INVALID_IMAGE')), undefined);
  assert.deepEqual(promisedTo(failed('DISK_TOO_SMALL')), NO_CAPACITY);
});

test('S5: what may start again, or has a disk, keeps what it was promised', () => {
  assert.equal(refusalBeside(failed('IMAGE_UNAVAILABLE')), 'NO_CAPACITY');
  assert.equal(refusalBeside({ ...failed('INVALID_IMAGE'), base: 'bases/x' }), 'NO_CAPACITY');
  assert.equal(refusalBeside({ ...failed('INVALID_IMAGE'), isFound: true }), 'NO_CAPACITY');
});
