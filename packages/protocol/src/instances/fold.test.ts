import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { InstanceControlContent, InstanceUpdateContent } from '../content/instance.ts';
import type { AllocationContent, InstanceStatusContent } from '../content/network.ts';
import {
  foldAll,
  foldAllocation,
  foldControl,
  foldInstance,
  foldStatus,
  foldUpdate,
  type InstanceFold,
  type Signed,
} from './fold.ts';
import type { InstanceState } from './state.ts';

const OWNER = '0x00000000000000000000000000000000000000aa';
const NODES = ['0x0000000000000000000000000000000000000001', '0x0000000000000000000000000000000000000002'];
const ID = '1'.repeat(64);

type Op =
  | { kind: 'update'; head: Signed; content: InstanceUpdateContent }
  | { kind: 'control'; head: Signed; content: InstanceControlContent }
  | { kind: 'allocation'; head: Signed; content: AllocationContent }
  | { kind: 'status'; head: Signed; content: InstanceStatusContent };

const SCHEDULERS = new Set(['scheduler']);
const creation = foldInstance({ itemHash: ID, sender: OWNER, time: 1000 }, OWNER, {
  name: 'n',
  cpu: 1,
  memory: 512,
  disk: 4,
  image: 'debian:12',
  ssh_key: 'ssh-ed25519 AAAA',
});
const base = foldAll([creation], SCHEDULERS)!;

const itemHash = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex'));
// Few distinct times, so that ties are common.
const time = fc.integer({ min: 1000, max: 1004 });
const head = (sender: fc.Arbitrary<string>) => fc.record({ itemHash, sender, time });
const reason = fc.constantFrom(null, { code: 'WHY', message: 'because' });

const op: fc.Arbitrary<Op> = fc.oneof(
  fc.record({
    kind: fc.constant('update' as const),
    head: head(fc.constant(OWNER)),
    content: fc.record(
      {
        instance_id: fc.constant(ID),
        name: fc.string(),
        description: fc.string(),
        firewall: fc.record({ allowedPorts: fc.array(fc.integer({ min: 1, max: 99 })) }),
      },
      { requiredKeys: ['instance_id'] },
    ),
  }),
  fc.record({
    kind: fc.constant('control' as const),
    head: head(fc.constant(OWNER)),
    content: fc.record({
      instance_id: fc.constant(ID),
      action: fc.constantFrom('start' as const, 'stop' as const, 'restart' as const),
    }),
  }),
  fc.record({
    kind: fc.constant('allocation' as const),
    head: head(fc.constantFrom('scheduler', 'scheduler', 'stranger')),
    content: fc.constantFrom(...NODES, null).chain((node) =>
      fc.record({
        instance_id: fc.constant(ID),
        node_id: fc.constant(node === null ? null : node.slice(2).padEnd(64, '0')),
        node_address: fc.constant(node),
        ipv6: fc.constant(node === null ? '' : 'fd00::1'),
        reason,
        decided_at_ms: time,
      }),
    ),
  }),
  fc.record({
    kind: fc.constant('status' as const),
    head: head(fc.constantFrom(...NODES)),
    content: fc.record({
      instance_id: fc.constant(ID),
      phase: fc.constantFrom('preparing' as const, 'running' as const, 'stopped' as const, 'failed' as const),
      reason,
      observed_at_ms: time,
      restart_id: fc.constant(null),
    }),
  }),
);

const ops = fc.uniqueArray(op, { selector: (one) => one.head.itemHash, maxLength: 12 });

function foldOf(one: Op): InstanceFold {
  if (one.kind === 'update') return foldUpdate(one.head, one.content);
  if (one.kind === 'control') return foldControl(one.head, one.content);
  if (one.kind === 'status') return foldStatus(one.head, one.content);
  return foldAllocation(one.head, one.content);
}

/** As the pipeline does it: one by one, and all over again when the allocation may change. */
function fold(sequence: readonly Op[]): InstanceState {
  const seen = [creation];
  let state = base;
  for (const next of sequence.map(foldOf)) {
    seen.push(next);
    state = next.stage === 'allocation' ? foldAll(seen, SCHEDULERS)! : next.apply(state, SCHEDULERS)!;
  }
  return state;
}

describe('the fold of an instance', () => {
  test('ends in the same state in any order of arrival', () => {
    fc.assert(
      fc.property(
        ops.chain((list) =>
          fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
        ),
        ([list, shuffled]) => assert.deepEqual(fold(shuffled), fold(list)),
      ),
      { numRuns: 2000 },
    );
  });

  test('a duplicate changes nothing', () => {
    fc.assert(fc.property(ops, (list) => assert.deepEqual(fold([...list, ...list]), fold(list))));
  });

  test('follows from the last word on each part, nine messages at most, however many there were', () => {
    // One that changes nothing leaves its date alone.
    const speaks = (one: Op) => one.kind !== 'update' || Object.keys(one.content).length > 1;
    fc.assert(
      fc.property(ops, (list) => {
        const state = fold(list.filter(speaks));
        const last = new Set(Object.values(state.stamps).flatMap((stamp) => (stamp ? [stamp[1]] : [])));
        assert.ok(last.size <= 8);
        const folds = list.filter(({ head }) => last.has(head.itemHash)).map(foldOf);
        assert.deepEqual(foldAll([creation, ...folds], SCHEDULERS), state);
      }),
      { numRuns: 2000 },
    );
  });

  test('the latest control decides; a restart is remembered although a start follows', () => {
    const control = (action: 'start' | 'stop' | 'restart', at: number) =>
      ({
        kind: 'control',
        head: { itemHash: String(at).padStart(64, '0'), sender: OWNER, time: at },
        content: { instance_id: ID, action },
      }) as const;
    const state = fold([control('restart', 1001), control('stop', 1002), control('start', 1003)]);
    assert.equal(state.desired, 'running');
    assert.equal(state.restartId, '1001'.padStart(64, '0'));
    assert.equal(fold([control('stop', 1002), control('start', 1001)]).desired, 'stopped');
  });

  test('before any allocation the instance says what it waits for, and can be reached by ssh once it runs', () => {
    assert.equal(base.phase, 'scheduled');
    assert.equal(base.reason?.code, 'AWAITING_NODE');
    assert.deepEqual(base.firewall, { allowedPorts: [22] });
  });
});
