import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Wanted } from '../wanted.ts';
import { type Actual, decideStep, type Step } from './diff.ts';

const wanted: Wanted = {
  isRunning: true,
  restartId: null,
  cpu: 1,
  memoryMib: 512,
  diskGib: 4,
  image: 'debian:12',
  sshKey: 'ssh-ed25519 AAAA',
  allowedPorts: [22],
};
const fresh: Actual = {
  record: { base: null, restartId: null, isPoweredOff: false, failure: null, status: null },
  vm: 'none',
  open: { allowedPorts: [] },
  isSilentButThere: false,
};
const made: Actual = { ...fresh, record: { ...fresh.record, base: 'bases/x' }, open: { allowedPorts: [22] } };
const stopping = { phase: 'stopping', reason: null, observedAtMs: 1, restartId: null } as const;
const failure = { code: 'VM_START_FAILED', message: 'no' };
const withRecord = (actual: Actual, change: Partial<Actual['record']>): Actual => ({
  ...actual,
  record: { ...actual.record, ...change },
});

/** A world in which every step does what it says, to see where deciding leads. */
function apply(step: Step, want: Wanted | null, actual: Actual): Actual {
  switch (step.do) {
    case 'renew':
      return withRecord(actual, {
        isPoweredOff: false,
        failure: null,
        restartId: want?.restartId ?? actual.record.restartId,
      });
    case 'prepare':
      return withRecord(actual, { base: 'bases/x' });
    case 'start':
    case 'reach':
      return { ...actual, vm: 'booting', open: want ?? fresh.open };
    case 'stop':
      return { ...actual, vm: 'none' };
    case 'collect':
      return withRecord({ ...actual, vm: 'none' }, { isPoweredOff: true });
    case 'firewall':
      return { ...actual, open: want ?? fresh.open };
    case 'release':
    case 'rest':
      return actual;
  }
}

function follow(want: Wanted | null, start: Actual): { steps: string[]; last: Step; actual: Actual } {
  let actual = start;
  const steps: string[] = [];
  for (let count = 0; count < 10; count++) {
    const step = decideStep(want, actual);
    if (step.do === 'rest' || step.do === 'release') return { steps, last: step, actual };
    steps.push(step.do);
    actual = apply(step, want, actual);
  }
  throw new Error(`no rest after ${steps.join(', ')}`);
}

describe('decideStep', () => {
  const cases: [string, Wanted | null, Actual, string[], string][] = [
    ['a new instance', wanted, fresh, ['prepare', 'start'], 'starting'],
    ['one that is up', wanted, { ...made, vm: 'ready' }, [], 'running'],
    [
      'one whose ports changed',
      { ...wanted, allowedPorts: [22, 80] },
      { ...made, vm: 'ready' },
      ['firewall'],
      'running',
    ],
    [
      'one with a UDP port more',
      { ...wanted, allowedUdpPorts: [443] },
      { ...made, vm: 'ready' },
      ['firewall'],
      'running',
    ],
    ['stop', { ...wanted, isRunning: false }, { ...made, vm: 'ready' }, ['stop'], 'stopped'],
    ['stop while it boots', { ...wanted, isRunning: false }, { ...made, vm: 'booting' }, ['stop'], 'stopped'],
    [
      'restart',
      { ...wanted, restartId: 'r1' },
      { ...made, vm: 'ready' },
      ['stop', 'renew', 'start'],
      'starting',
    ],
    [
      'a restart that was carried out',
      { ...wanted, restartId: 'r1' },
      { ...withRecord(made, { restartId: 'r1' }), vm: 'ready' },
      [],
      'running',
    ],
    [
      'a stop was cut off, and the guest is down',
      { ...wanted, isRunning: false },
      { ...withRecord(made, { status: stopping }), vm: 'off' },
      ['stop'],
      'stopped',
    ],
    ['the guest powered itself off', wanted, { ...made, vm: 'off' }, ['collect'], 'stopped'],
    ['it stays off', wanted, withRecord(made, { isPoweredOff: true }), [], 'stopped'],
    [
      'a restart turns it on again',
      { ...wanted, restartId: 'r1' },
      withRecord(made, { isPoweredOff: true }),
      ['renew', 'start'],
      'starting',
    ],
    [
      'a stop makes the next start a new wish',
      { ...wanted, isRunning: false },
      withRecord(made, { isPoweredOff: true }),
      ['renew'],
      'stopped',
    ],
    ['this node gave up', wanted, withRecord(made, { failure }), [], 'failed'],
    [
      'a restart tries again',
      { ...wanted, restartId: 'r1' },
      withRecord(made, { failure }),
      ['renew', 'start'],
      'starting',
    ],
    [
      'one that never says it is up, but answers',
      wanted,
      { ...made, vm: 'booting', isSilentButThere: true },
      [],
      'running',
    ],
    [
      'one that was taken over without its record',
      { ...wanted, allowedPorts: [] },
      { ...fresh, vm: 'ready', open: null },
      ['firewall', 'prepare'],
      'running',
    ],
    [
      'one that runs and cannot be prepared',
      wanted,
      { ...withRecord(fresh, { failure }), vm: 'ready' },
      ['firewall'],
      'running',
    ],
    ['stopped before it was ever made', { ...wanted, isRunning: false }, fresh, [], 'stopped'],
  ];
  for (const [name, want, actual, steps, phase] of cases) {
    test(name, () => {
      const { steps: taken, last } = follow(want, actual);
      assert.deepEqual(taken, steps);
      assert.equal(last.do === 'rest' ? last.phase : last.do, phase);
    });
  }

  test('a QEMU that does not answer is asked again, or ended where an end is wanted', () => {
    const silent: Actual = { ...made, vm: 'silent' };
    assert.deepEqual(decideStep(wanted, silent), { do: 'reach' });
    for (const want of [null, { ...wanted, isRunning: false }, { ...wanted, restartId: 'r1' }])
      assert.deepEqual(decideStep(want, silent), { do: 'stop' });
  });

  test('what belongs to another node is stopped and released', () => {
    assert.deepEqual(follow(null, { ...made, vm: 'ready' }).steps, ['stop']);
    assert.equal(follow(null, { ...made, vm: 'ready' }).last.do, 'release');
    assert.equal(follow(null, fresh).last.do, 'release');
  });

  test('from anywhere it comes to rest, in the phase that is wanted', () => {
    const anyWanted = fc.record({
      isRunning: fc.boolean(),
      restartId: fc.constantFrom(null, 'r1', 'r2'),
      allowedPorts: fc.subarray([22, 80]),
      allowedUdpPorts: fc.subarray([53, 443]),
    });
    const anyActual = fc.record({
      vm: fc.constantFrom('none', 'booting', 'ready', 'silent', 'off'),
      base: fc.constantFrom(null, 'bases/x'),
      restartId: fc.constantFrom(null, 'r1'),
      isPoweredOff: fc.boolean(),
      failure: fc.constantFrom(null, failure),
      status: fc.constantFrom(null, stopping),
      open: fc.option(
        fc.record({ allowedPorts: fc.subarray([22, 80]), allowedUdpPorts: fc.subarray([53, 443]) }),
      ),
      isSilentButThere: fc.boolean(),
    });
    fc.assert(
      fc.property(anyWanted, anyActual, (want, { vm, open, isSilentButThere, ...record }) => {
        const { last, actual } = follow({ ...wanted, ...want }, {
          record,
          vm,
          open,
          isSilentButThere,
        } as Actual);
        assert.equal(last.do, 'rest');
        if (last.do !== 'rest') return;
        if (!want.isRunning) assert.equal(last.phase, 'stopped');
        else if (actual.vm === 'none') assert.ok(last.reason !== null, 'what is not as wanted says why');
        else assert.ok(last.phase === 'running' || last.phase === 'starting');
      }),
    );
  });
});
