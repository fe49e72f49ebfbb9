import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type { AppError } from '@skerry/protocol';
import { inDirectory } from '../testing/directory.ts';
import { AcceleratorChoice, decideBySigns, hasVirtualisationFlag } from './accel.ts';

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

test('where KVM is required, a trial that failed is not the last: a server may be too busy for once', () =>
  inDirectory(async (directory) => {
    const choice = new AcceleratorChoice('kvm', createLogger('test', 'silent'));
    const [kernel, initrd] = [join(directory, 'kernel'), join(directory, 'initrd')];
    const failures: unknown[] = [];
    for (const _ of ['once', 'again'])
      await choice.decide(kernel, initrd).catch((error: unknown) => failures.push(error));
    const codes = failures.map((error) => (error as AppError).code);
    assert.deepEqual(codes, ['HOST_NOT_READY', 'HOST_NOT_READY']);
    assert.notEqual(failures[0], failures[1]);
  }));
