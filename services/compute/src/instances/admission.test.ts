import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { decideAdmission } from './admission.ts';

describe('admission', () => {
  const capacity = { cpu: 2, memoryMib: 4_096, diskGib: 100 };

  test('memory and disk are promised once, cores four times; a refusal says what lacks', () => {
    const small = { cpu: 2, memoryMib: 1_024, diskGib: 20 };
    assert.equal(decideAdmission(capacity, [small, small, small], small), null);
    const refusal = decideAdmission(capacity, [small, small, small, small], small);
    assert.equal(refusal?.code, 'NO_CAPACITY');
    assert.match(
      refusal?.message ?? '',
      /0 virtual cores left of the 2 needed.*0 MiB of memory left of the 1024/,
    );
    assert.match(
      decideAdmission(capacity, [], { ...small, diskGib: 10_240 })?.message ?? '',
      /100 GiB of disk/,
    );
  });

  test('whatever is admitted, the sum of what was promised never exceeds what there is', () => {
    const need = fc.record({
      cpu: fc.integer({ min: 1, max: 4 }),
      memoryMib: fc.integer({ min: 128, max: 3_000 }),
      diskGib: fc.integer({ min: 1, max: 60 }),
    });
    fc.assert(
      fc.property(fc.array(need, { maxLength: 30 }), (needs) => {
        const taken: typeof needs = [];
        for (const one of needs) if (decideAdmission(capacity, taken, one) === null) taken.push(one);
        const sum = (of: (one: (typeof needs)[number]) => number) =>
          taken.reduce((all, one) => all + of(one), 0);
        assert.ok(
          sum((one) => one.cpu) <= 8 &&
            sum((one) => one.memoryMib) <= 4_096 &&
            sum((one) => one.diskGib) <= 100,
        );
      }),
    );
  });
});
