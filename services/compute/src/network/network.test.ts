import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  chooseHostPort,
  FORWARDED_PORTS_MAX,
  listForwarded,
  parseForwardedElsewhere,
  parseListening,
  parsePortRange,
} from './host-ports.ts';
import { chooseIpv4Pool, findLink, ipv4LinkOf, LINKS_PER_POOL, parseIpv4Pool } from './ipv4.ts';
import { INTERFACE_NAME_CHARS, machineIdOf, macOf, networkNames, tapName } from './names.ts';
import { FORWARD_MAPS, type GuestLink, nodeRuleset } from './ruleset.ts';
import { findOnLinkInterface } from './uplink.ts';

const hash = fc.stringMatching(/^[0-9a-f]{64}$/);
const names = networkNames('abcdef0123456789'.repeat(4));
const guest: GuestLink = {
  tap: 'sabcde111111111',
  network: '2001:db8:1:2:3:5330:dcef:e180/124',
  guest: '2001:db8:1:2:3:5330:dcef:e181',
  allowedPorts: [22, 443],
  ipv4: ipv4LinkOf('172.20.16.0/20', 1),
  hostPorts: { 22: 24_001 },
};
const FORWARDS = Object.values(FORWARD_MAPS);
const settings = { ipv4Pool: '172.20.16.0/20', lanOpen: false, openNetworks: [] };

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
    const text = nodeRuleset(names, [guest], settings);
    const chains = text.split('chain ').filter((chain) => chain.includes('type filter hook'));
    assert.equal(chains.length, 4);
    for (const chain of chains) {
      assert.match(chain, /policy accept;/);
      const [, ...rules] = chain
        .slice(chain.indexOf('{') + 1, chain.indexOf('}'))
        .trim()
        .split('\n')
        .map((line) => line.trim());
      for (const rule of rules)
        assert.match(rule, /^[io]ifname "sabcde\*" (oifname != "sabcde\*" )?jump [a-z_]+$/);
    }
  });

  test('one table, replaced as a whole', () => {
    const text = nodeRuleset(names, [guest], settings);
    assert.ok(
      text.startsWith(
        `table inet ${names.table}\ndelete table inet ${names.table}\ntable inet ${names.table} {`,
      ),
    );
    assert.equal(text.match(/table inet/g)?.length, 3);
  });

  test('each port once, with its tap', () => {
    const text = nodeRuleset(
      names,
      [{ ...guest, allowedPorts: [443, 22, 443], allowedUdpPorts: [443] }],
      settings,
    );
    assert.match(
      text,
      /elements = \{ "sabcde111111111" \. tcp \. 443, "sabcde111111111" \. tcp \. 22, "sabcde111111111" \. udp \. 443 \}/,
    );
    assert.match(text, /elements = \{ "sabcde111111111" \. 2001:db8:1:2:3:5330:dcef:e180\/124 \}/);
  });

  test('a port of the node leads to the guest by what is allowed there, and to ssh by TCP', () => {
    const open = { allowedPorts: [80, 443], allowedUdpPorts: [53, 443] };
    const hostPorts = { 22: 24_001, 53: 24_002, 80: 24_003, 443: 24_004 };
    const text = nodeRuleset(names, [{ ...guest, ...open, hostPorts }], settings);
    const portsOf = (map: string) =>
      [
        ...text
          .slice(text.indexOf(`map ${map} {`))
          .split('}\n')[0]!
          .matchAll(/([0-9]+) : /g),
      ].map(([, port]) => Number(port));
    assert.deepEqual(portsOf('forwarded'), [24_001, 24_003, 24_004]);
    assert.deepEqual(portsOf('forwarded_udp'), [24_002, 24_004]);
    for (const protocol of ['tcp', 'udp'])
      assert.equal(text.match(new RegExp(`dnat ip to ${protocol} dport`, 'g'))?.length, 2);
  });

  test('without guests and without ports there are no empty element lists', () => {
    assert.doesNotMatch(nodeRuleset(names, [], settings), /elements/);
    assert.doesNotMatch(
      nodeRuleset(names, [{ ...guest, allowedPorts: [], hostPorts: {} }], settings),
      /inet_service\n {4}elements/,
    );
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
      { allowedUdpPorts: [0] },
      { allowedUdpPorts: ['53 }' as never] },
      { allowedPorts: ['22 } accept' as never] },
      { guest: '::1 }' },
      { hostPorts: { 22: 0 } },
      { ipv4: { ...guest.ipv4, guest: '1.2.3.4; }' } },
    ];
    for (const change of wrong)
      assert.throws(() => nodeRuleset(names, [{ ...guest, ...change }], settings), /is malformed/);
  });
});

describe('IPv4', () => {
  test('links of a pool do not overlap, and end with it', () => {
    assert.deepEqual(ipv4LinkOf('172.20.16.0/20', 0), {
      network: '172.20.16.0/30',
      gateway: '172.20.16.1',
      guest: '172.20.16.2',
    });
    assert.equal(ipv4LinkOf('172.20.16.0/20', LINKS_PER_POOL - 1).guest, '172.20.31.254');
    assert.throws(() => ipv4LinkOf('172.20.16.0/20', LINKS_PER_POOL), /has no link/);
    for (const link of [0, 1, LINKS_PER_POOL - 1]) {
      const { gateway, guest: inside } = ipv4LinkOf('172.20.16.0/20', link);
      assert.deepEqual(
        [gateway, inside].map((one) => findLink('172.20.16.0/20', one)),
        [link, undefined],
      );
    }
    for (const other of ['172.20.15.253', '172.20.32.1', 'fe80::1', undefined])
      assert.equal(findLink('172.20.16.0/20', other), undefined);
    for (const wrong of ['172.20.17.0/20', '172.20.16.0/24', 'x', '::/20'])
      assert.throws(() => parseIpv4Pool(wrong));
  });

  test('a pool avoids what is in use; where all is, it says so', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (random) => {
        const pool = parseIpv4Pool(chooseIpv4Pool(['172.16.0.0/13', '172.24.0.1', '10.0.0.0/8'], random));
        const second = Number(pool.split('.')[1]);
        assert.ok(second >= 24 && second <= 31 && pool !== '172.24.0.0/20', pool);
      }),
    );
    assert.throws(() => chooseIpv4Pool(['0.0.0.0/0'], 0.5), /in use/);
  });

  test('a range of ports is two ports that programs of the system do not use, in their order', () => {
    assert.deepEqual(parsePortRange('24000-32767'), { first: 24_000, last: 32_767 });
    assert.deepEqual(parsePortRange('1024-1024'), { first: 1_024, last: 1_024 });
    for (const text of ['', '24000', '32767-24000', '1023-2000', '24000-65536', '24000-', '1e4-2e4'])
      assert.throws(() => parsePortRange(text), /expected two ports/, text);
  });

  test('ports: ssh always, twenty others at most, each its own, the same every time', () => {
    const many = Array.from({ length: 64 }, (_, index) => 1_000 + index);
    assert.deepEqual(listForwarded({ allowedPorts: [] }), [22]);
    assert.deepEqual(
      listForwarded({ allowedPorts: [443, 80], allowedUdpPorts: [53, 22, 443] }),
      [22, 80, 443, 53],
    );
    assert.equal(
      listForwarded({ allowedPorts: [...many, 22], allowedUdpPorts: many }).length,
      FORWARDED_PORTS_MAX + 1,
    );
    const range = { first: 24_000, last: 24_009 };
    fc.assert(
      fc.property(
        hash,
        fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { maxLength: 10 }),
        (id, ports) => {
          const taken = new Set<number>();
          for (const port of ports) {
            const chosen = chooseHostPort(id, port, range, (one) => taken.has(one));
            assert.ok(chosen >= range.first && chosen <= range.last && !taken.has(chosen));
            taken.add(chosen);
          }
        },
      ),
    );
    const one = () => chooseHostPort('a'.repeat(64), 80, range, () => false);
    assert.equal(one(), one());
    assert.throws(() => chooseHostPort('a'.repeat(64), 80, range, () => true), /in use/);
  });

  test('what others use is read from the kernel', () => {
    const tcp = `  sl  local_address rem_address   st
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000
   1: 0100007F:1F91 0100007F:0016 01 00000000:00000000 00:00000000 00000000
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0`;
    assert.deepEqual(parseListening(tcp, 'tcp'), [8080, 22]);
    const udp = `   sl  local_address rem_address   st
  102: 00000000:5DC1 00000000:0000 07 00000000:00000000 00:00000000 00000000
  103: 0100007F:5DC2 0100007F:0035 01 00000000:00000000 00:00000000 00000000`;
    assert.deepEqual(parseListening(udp, 'udp'), [24_001]);
    const maps = (table: string) =>
      JSON.stringify({
        nftables: [
          { metainfo: {} },
          { map: { table, name: 'forwarded', elem: [[24_001, { concat: ['172.16.0.2', 22] }]] } },
          { map: { table, name: 'forwarded_udp', elem: [[24_002, { concat: ['172.16.0.2', 53] }]] } },
          { map: { table, name: 'another', elem: [[24_003, 'x']] } },
          { map: { table: 'mine', name: 'forwarded', elem: [[25_001, 'x']] } },
          { map: { table: 'skerry_b', name: 'forwarded' } },
        ],
      });
    assert.deepEqual(parseForwardedElsewhere(maps('skerry_b'), 'skerry_a', FORWARDS), [24_001, 24_002]);
    assert.deepEqual(parseForwardedElsewhere(maps('skerry_a'), 'skerry_a', FORWARDS), []);
    assert.deepEqual(parseForwardedElsewhere('', 'skerry_a', FORWARDS), []);
  });

  test('neighbours are answered only where the whole /64 is on the link', () => {
    const shown = (local: string, prefixlen: number, ifname = 'eth0') => [
      { ifname, addr_info: [{ family: 'inet6', local, prefixlen }] },
    ];
    const find = (interfaces: Parameters<typeof findOnLinkInterface>[0]) =>
      findOnLinkInterface(interfaces, '2001:db8:1:2::/64', (name) => name.startsWith('sabcde'));
    assert.equal(find(shown('2001:db8:1:2::9', 64)), 'eth0');
    assert.equal(find(shown('2001:db8:1:2::9', 128)), undefined);
    assert.equal(find(shown('2001:db8:1:3::9', 64)), undefined);
    assert.equal(find(shown('2001:db8:1:2::9', 64, 'sabcde111111111')), undefined);
    assert.equal(find(shown('2001:db8:1:2::9', 64, 'lo')), undefined);
  });
});
