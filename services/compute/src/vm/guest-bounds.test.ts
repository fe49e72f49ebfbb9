import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guestLimits } from './guest-bounds.ts';

const MIB = 1024 ** 2;

test('a guest may have its cores and its memory, and what its QEMU takes beside them', () => {
  const small = { cpu: 1, memoryMib: 512 };
  assert.deepEqual(guestLimits(small, 'kvm'), {
    ...{ memoryBytes: (512 + 8 + 256) * MIB, tasks: 129, cpus: 1.5, weight: 1, maySwap: true },
  });
  // Code that is kept translated.
  assert.equal(guestLimits(small, 'tcg').memoryBytes, (512 + 8 + 256 + 128) * MIB);
  const large = guestLimits({ cpu: 64, memoryMib: 65_536 }, 'kvm');
  assert.deepEqual([large.cpus, large.weight, large.memoryBytes], [64.5, 64, (65_536 + 1_024 + 256) * MIB]);
});
