import type { ItemHash } from '@skerry/protocol';
import fc from 'fast-check';
import type { Instance } from '../instance.ts';

/** A hash that begins with these digits; names depend on the first eleven. */
export const hashOf = (digits: string, tail = '') =>
  digits.padEnd(64 - tail.length, '0') as ItemHash & string;

export function instance(changes: Partial<Instance> = {}): Instance {
  return {
    hash: hashOf('5330dcefe18'),
    createdAt: 1000,
    effectiveAt: changes.createdAt ?? 1000,
    placed: true,
    ipv6: '2001:db8::1',
    refusedIpv6: null,
    desired: 'running',
    proxyHeader: false,
    phase: 'running',
    reason: null,
    reasonCode: null,
    ...changes,
  };
}

/** Few names, many hashes, few timestamps: collisions of every kind. */
export const collidingInstance: fc.Arbitrary<Instance> = fc
  .record({
    name: fc.constantFrom('00000000000', '00000401003', 'fffffffffff'),
    tail: fc.nat(5),
    createdAt: fc.integer({ min: 1, max: 3 }),
    placed: fc.boolean(),
    ipv6: fc.constantFrom(null, '2001:db8::1', '2001:db8::2'),
    desired: fc.constantFrom('running' as const, 'stopped' as const),
    proxyHeader: fc.boolean(),
  })
  .map(({ name, tail, ...rest }) =>
    instance({ ...rest, hash: `${name.padEnd(63, '0')}${tail}` as Instance['hash'] }),
  );
