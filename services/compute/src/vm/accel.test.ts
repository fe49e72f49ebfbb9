import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decideBySigns, hasVirtualisationFlag } from './accel.ts';

describe('the cheap signs', () => {
  const good = { isDeviceUsable: true, hasProcessorFlag: true, isSoftwareBackend: false };

  test('only a trial can say yes', () => {
    assert.equal(decideBySigns(good), undefined);
  });

  test('each obstacle is named', () => {
    assert.match(decideBySigns({ ...good, isDeviceUsable: false }) ?? '', /\/dev\/kvm/);
    assert.match(decideBySigns({ ...good, hasProcessorFlag: false }) ?? '', /vmx nor svm/);
    assert.match(decideBySigns({ ...good, isSoftwareBackend: true }) ?? '', /kvm_pvm/);
  });

  test('flags are whole words of the flags line', () => {
    assert.equal(hasVirtualisationFlag('model name : vmx\nflags\t\t: fpu vme svm_lock\n'), false);
    assert.equal(hasVirtualisationFlag('flags\t\t: fpu vmx sse\n'), true);
    assert.equal(hasVirtualisationFlag('flags\t\t: fpu svm'), true);
    assert.equal(hasVirtualisationFlag(''), false);
  });
});
