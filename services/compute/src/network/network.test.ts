import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { INTERFACE_NAME_CHARS, machineIdOf, macOf, networkNames, tapName } from './names.ts';
import { type GuestLink, nodeRuleset } from './ruleset.ts';

const hash = fc.stringMatching(/^[0-9a-f]{64}$/);
const names = networkNames('abcdef0123456789'.repeat(4));
const guest: GuestLink = {
  tap: 'sabcde111111111',
  network: '2001:db8:1:2:3:5330:dcef:e180/124',
  allowedPorts: [22, 443],
};

describe('names', () => {
  test('fit into the kernel and tell nodes and instances apart', () => {
    fc.assert(
      fc.property(hash, hash, (nodeId, id) => {
        const made = networkNames(nodeId);
        const tap = tapName(made, id);
        assert.equal(tap.length, INTERFACE_NAME_CHARS);
        assert.ok(tap.startsWith(made.tapPrefix));
        assert.match(macOf(id), /^52(:[0-9a-f]{2}){5}$/);
        assert.match(machineIdOf(id), /^[0-9a-f]{32}$/);
      }),
    );
  });
});

describe('nodeRuleset', () => {
  test('no hook has a policy that touches the traffic of others, and every base chain asks for our taps first', () => {
    const text = nodeRuleset(names, [guest]);
    const chains = text.split('chain ').filter((chain) => chain.includes('type filter hook'));
    assert.equal(chains.length, 4);
    for (const chain of chains) {
      assert.match(chain, /policy accept;/);
      const [, ...rules] = chain
        .slice(chain.indexOf('{') + 1, chain.indexOf('}'))
        .trim()
        .split('\n')
        .map((line) => line.trim());
      assert.equal(rules.length, 1);
      assert.match(rules[0] ?? '', /^[io]ifname "sabcde\*" jump [a-z_]+$/);
    }
  });

  test('one table, replaced as a whole', () => {
    const text = nodeRuleset(names, [guest]);
    assert.ok(
      text.startsWith(
        `table inet ${names.table}\ndelete table inet ${names.table}\ntable inet ${names.table} {`,
      ),
    );
    assert.equal(text.match(/table inet/g)?.length, 3);
  });

  test('each port once, with its tap', () => {
    const text = nodeRuleset(names, [{ ...guest, allowedPorts: [443, 22, 443] }]);
    assert.match(text, /elements = \{ "sabcde111111111" \. 443, "sabcde111111111" \. 22 \}/);
    assert.match(text, /elements = \{ "sabcde111111111" \. 2001:db8:1:2:3:5330:dcef:e180\/124 \}/);
  });

  test('without guests and without ports there are no empty element lists', () => {
    assert.doesNotMatch(nodeRuleset(names, []), /elements/);
    assert.doesNotMatch(nodeRuleset(names, [{ ...guest, allowedPorts: [] }]), /inet_service\n {4}elements/);
  });

  test('nothing that is not of the expected form gets into the text', () => {
    const wrong: Partial<GuestLink>[] = [
      { tap: 'eth0' },
      { tap: 'sabcde11111111"' },
      { network: '::/0' },
      { network: 'x/124' },
      { allowedPorts: [0] },
      { allowedPorts: [65_536] },
      { allowedPorts: [1.5] },
      { allowedPorts: ['22 } accept' as never] },
    ];
    for (const change of wrong)
      assert.throws(() => nodeRuleset(names, [{ ...guest, ...change }]), /wrong form/);
  });
});
