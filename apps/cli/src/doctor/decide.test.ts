import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Role, type RoleSettings, readRole } from '../joining/roles.ts';
import type { Check } from './check.ts';
import { decide } from './decide.ts';
import type { Attempt, Facts, MachineFacts, NetworkFacts } from './facts.ts';
import { renderChecks, renderSummary } from './render.ts';

const trusted = (...value: string[]) => ({ value, source: 'setting' as const });
const NETWORK: NetworkFacts = {
  url: 'https://core.example.org',
  failure: undefined,
  clockSeconds: 0.4,
  info: {
    ...{ node_multi_addresses: [], name: 'first', version: '0.1.0', address: '0x1' },
    trust: {
      schedulers: trusted('0x2'),
      scoring_publishers: trusted('0x3'),
      credit_publishers: trusted('0x4'),
      known_core_nodes: trusted(),
      credit_enforcement: { value: false, source: 'setting' },
    },
  },
};
const MACHINE: MachineFacts = {
  ...{ platform: 'linux', nodeVersion: '26.10.0', isRoot: true, memoryMib: 8_000, diskFreeGib: 100 },
  ...{ isDataWritable: true, missingPrograms: [], keys: [{ path: '/data/node.key', mode: 0o100600 }] },
  host: undefined,
};
const HOST = { obstacles: [], kvmObstacle: undefined, programObstacles: [] };

const settingsOf = (role: Role, more: Partial<RoleSettings> = {}): RoleSettings => ({
  ...{ role, host: '::', dataDir: '/data', coreUrl: NETWORK.url, announceUrl: undefined },
  ...{ ports: [{ variable: 'SKERRY_COMPUTE_PORT', host: '::', port: 4020, describe: 'HTTP port' }] },
  ...{ ipv6Prefix: undefined, domain: undefined },
  config: { announceUrl: 'http://203.0.113.9:4020', host: '::', port: 4020, coreUrl: NETWORK.url },
  ...more,
});

const factsOf = (role: Role, more: Partial<Facts> = {}, settings: Partial<RoleSettings> = {}): Facts => ({
  settings: settingsOf(role, settings),
  machine: { ...MACHINE, host: role === 'compute' ? HOST : undefined },
  ports: [{ variable: 'SKERRY_COMPUTE_PORT', host: '::', port: 4020, describe: 'HTTP port', state: 'free' }],
  ...{
    isRunning: false,
    network: NETWORK,
    ownAddresses: ['203.0.113.9'],
    places: [],
    another: 'with --core',
  },
  ...{ prefix: undefined, name: undefined },
  ...more,
});

const notOk = (checks: readonly Check[]) =>
  checks.filter(({ outcome }) => outcome !== 'ok').map(({ code, outcome }) => `${outcome} ${code}`);
const find = (facts: Facts, code: string) => decide(facts).find((one) => one.code === code)!;
const attempt = (verdict: Attempt['verdict'], place = 'http://203.0.113.9:4020'): Attempt => ({
  ...{ place, verdict, seenAs: '203.0.113.9' },
});

describe('what the facts mean', () => {
  test('a machine that has everything', () => {
    assert.equal(find(factsOf('core'), 'KEYS').text, '1 key file, closed to other users');
    const places = [attempt('REACHED')];
    const prefix = attempt('REACHED', '2a00:1:2:3::/64');
    const facts = factsOf('compute', { places, prefix }, { ipv6Prefix: '2a00:1:2:3::/64' });
    assert.deepEqual(notOk(decide(facts)), []);
    for (const role of ['gateway', 'core', 'monitor'] as const) {
      const domain = role === 'gateway' ? 'apps.example.org' : undefined;
      const ownAddresses = ['203.0.113.9', '2a00:1:2:3::1'];
      assert.deepEqual(notOk(decide(factsOf(role, { ownAddresses }, { domain }))), [], role);
    }
  });

  test('each of a machine’s faults is said with the command that mends it', () => {
    const faults: [Partial<MachineFacts>, string, RegExp | undefined][] = [
      [{ platform: 'darwin' }, 'fail SYSTEM', undefined],
      [{ memoryMib: 1_000 }, 'fail MEMORY', /memory/],
      [{ memoryMib: 2_000 }, 'warn MEMORY', /memory/],
      [{ diskFreeGib: 1 }, 'fail DISK', /\(SKERRY_COMPUTE_DATA_DIR\)/],
      [{ isDataWritable: false }, 'fail DATA', /sudo.*chown -R \$\(id -u\) \/data$/],
      [{ keys: [{ path: '/data/node.key', mode: 0o100640 }] }, 'fail KEYS', /chmod 600 \/data\/node\.key$/],
      [
        { missingPrograms: [['ping', 'iputils-ping']] },
        'fail MISSING_PROGRAM',
        /apt-get install iputils-ping$/,
      ],
      [
        { host: { ...HOST, obstacles: ['missing programs: nft; apt-get install nftables'] } },
        'fail VIRTUAL_MACHINES',
        /^Install them: apt-get install nftables$/,
      ],
      [{ host: { ...HOST, kvmObstacle: '/dev/kvm cannot be opened' } }, 'warn KVM', /modprobe kvm_amd$/],
      [
        { host: { ...HOST, programObstacles: ['missing programs: bwrap; apt-get install bubblewrap'] } },
        'warn PROGRAMS',
        /bubblewrap$/,
      ],
    ];
    for (const [fault, expected, mend] of faults) {
      const more = { places: [attempt('REACHED')], machine: { ...MACHINE, host: HOST, ...fault } };
      const facts = factsOf('compute', more, { ipv6Prefix: '2a00:1:2:3::/64' });
      assert.deepEqual(notOk(decide(facts)), [expected]);
      if (mend) assert.match(find(facts, expected.split(' ')[1]!).mend ?? '', mend);
    }
  });

  test('a path and a URL are one word of the command that mends it', () => {
    const dataDir = '/my node';
    const keys = [{ path: '/my node/node.key', mode: 0o100640 }];
    const facts = factsOf(
      'core',
      {
        machine: { ...MACHINE, isDataWritable: false, keys },
        network: { ...NETWORK, url: 'http://[::1]:4024', failure: 'nobody is there', info: undefined },
        places: [attempt('NO_ANSWER', 'http://[2a00::1]:4024')],
      },
      { dataDir },
    );
    const mends = ['DATA', 'KEYS', 'CORE_NODE', 'UNREACHABLE'].map((code) => find(facts, code).mend);
    for (const [at, command] of [
      "chown -R $(id -u) '/my node'",
      "chmod 600 '/my node/node.key'",
      "curl 'http://[::1]:4024/api/v0/version'",
      "curl -m 5 'http://[2a00::1]:4024'",
    ].entries())
      assert.ok(mends[at]?.endsWith(`: ${command}`), String(mends[at]));
  });

  test('ports', () => {
    const at = (state: Facts['ports'][number]['state'], isRunning = false) => {
      const ports = [{ variable: 'SKERRY_CORE_PORT', host: '::', port: 4024, describe: 'HTTP port', state }];
      return notOk(decide(factsOf('core', { ports, isRunning })));
    };
    assert.deepEqual(at('free'), []);
    assert.deepEqual(at('taken', true), []);
    assert.deepEqual(at('taken'), ['fail PORT_IN_USE']);
    assert.deepEqual(at('forbidden'), ['fail PORT_FORBIDDEN']);
    assert.deepEqual(at('absent'), ['fail NO_SUCH_ADDRESS']);
  });

  test('the network: silence, clocks, trust', () => {
    const at = (more: Partial<NetworkFacts>) =>
      notOk(decide(factsOf('core', { network: { ...NETWORK, ...more } })));
    assert.deepEqual(at({ failure: 'ECONNREFUSED' }), ['fail CORE_NODE']);
    assert.deepEqual([at({ clockSeconds: 61 }), at({ clockSeconds: -61 })], [['fail CLOCK'], ['fail CLOCK']]);
    assert.deepEqual([at({ clockSeconds: -30 }), at({ clockSeconds: undefined })], [['warn CLOCK'], []]);
    const trust = { ...NETWORK.info!.trust, schedulers: trusted() };
    assert.deepEqual(at({ info: { ...NETWORK.info!, trust } }), ['warn TRUST']);
    assert.deepEqual(notOk(decide(factsOf('monitor', { network: undefined }))), ['warn CORE_NODE']);
  });

  test('a node that would announce loopback is told so', () => {
    const config = { announceUrl: undefined, host: '::', port: 4020, coreUrl: NETWORK.url };
    const facts = factsOf('compute', {}, { config, ipv6Prefix: '2a00:1:2:3::/64' });
    assert.deepEqual(notOk(decide(facts)), ['fail ANNOUNCE_URL']);
    assert.match(find(facts, 'ANNOUNCE_URL').mend!, /--announce-url/);
  });

  test('a public address that cannot be reached', () => {
    const at = (verdict: Attempt['verdict'], isRunning = false) => {
      const facts = factsOf('core', { places: [attempt(verdict)], isRunning });
      const check = decide(facts).at(-1)!;
      return `${check.outcome} ${check.code} ${check.mend ?? ''}`;
    };
    assert.match(at('NO_CONNECTION'), /^fail UNREACHABLE .*nft add rule .* dport 4020 accept/);
    assert.match(at('NO_ANSWER'), /^fail UNREACHABLE .*curl -m 5/);
    assert.match(at('OTHER_ANSWER'), /^fail UNREACHABLE Forward port 4020/);
    assert.match(at('OTHER_ANSWER', true), /^ok REACHABLE/);
    assert.match(at('NOT_YOURS'), /^fail UNREACHABLE .*--announce-url http:\/\/203\.0\.113\.9:4020$/);
    const named = factsOf('core', { places: [attempt('NOT_YOURS', 'http://core.example.org:4024')] });
    assert.match(find(named, 'UNREACHABLE').mend!, /^Point core\.example\.org at 203\.0\.113\.9 in the DNS/);
    assert.match(at('BAD_CERTIFICATE'), /^fail UNREACHABLE .*certbot/);
    assert.match(at('NOT_PUBLIC'), /^fail NOT_PUBLIC .*SKERRY_CORE_ALLOW_PRIVATE/);
    assert.match(at('UNASKED'), /^warn UNCHECKED/);
  });

  test('what a core node on the same machine sees is not said to be what others see', () => {
    const [place, range] = ['http://127.0.0.1:4020', '2a00:1:2:3::/64'];
    const at = (verdict: Attempt['verdict'], seenAs: string, isRunning = false) => {
      const [one, prefix] = [place, range].map((to) => ({ ...attempt(verdict, to), seenAs }));
      const facts = factsOf('compute', { places: [one!], prefix, isRunning }, { ipv6Prefix: range });
      return decide(facts).map(({ text }) => text);
    };
    assert.ok(at('REACHED', '203.0.113.9').includes(`others reach ${place}`));
    for (const seenAs of ['127.0.0.1', '::1']) {
      const told = at('REACHED', seenAs);
      assert.ok(told.includes(`the core node on this server reaches ${place}; nobody else was asked`));
      assert.match(told.at(-1)!, /^2a00:1:2:3::\/64 is routed to this server, as a core node on it sees/);
      const answered = at('OTHER_ANSWER', seenAs, true);
      assert.ok(
        answered.includes(
          `the core node on this server reaches ${place}, where this server's daemon answers; nobody else was asked`,
        ),
      );
      const all = [...told, ...answered, ...at('NO_CONNECTION', seenAs)];
      assert.doesNotMatch(all.join(), /others (reach|cannot)/);
    }
  });

  test('a gateway that runs takes TLS alone at its port for that, and answers no question without it', () => {
    const [http, https] = ['HTTP', 'HTTPS'].map((scheme, at) => ({
      ...{ variable: `SKERRY_GATEWAY_${scheme}_PORT`, host: '::', port: 80 + at * 363, describe: scheme },
      state: 'taken' as const,
    }));
    const ports = [http!, https!];
    const at = (place: string, isRunning: boolean) => {
      const facts = factsOf(
        'gateway',
        { ports, places: [attempt('NO_ANSWER', place)], isRunning },
        { ports },
      );
      return decide(facts)
        .filter(({ code }) => code === 'REACHABLE' || code === 'UNREACHABLE')
        .map(({ outcome, text }) => `${outcome} ${text}`);
    };
    const name = 'skerry-doctor-1.apps.example.org';
    assert.deepEqual(at(`http://${name}:443`, true), [
      `ok others reach ${name}:443, where this server's daemon takes TLS`,
    ]);
    // Nobody takes TLS there now: the doctor itself listened.
    assert.match(at(`http://${name}:443`, false).join(), /^fail .* takes connections but does not answer$/);
    assert.match(at(`http://${name}:80`, true).join(), /^fail .* takes connections but does not answer$/);
  });

  test('gossip that nobody reaches, and one that a firewall can let through', () => {
    const announceUrl = 'https://core.example.org';
    const at = (host: string, config: Record<string, unknown>) =>
      notOk(decide(factsOf('core', {}, { host, announceUrl, config })));
    const unset = { p2pHost: undefined, p2pPort: 0, gossip: true };
    const open = { ...unset, p2pHost: '::', p2pPort: 4025 };
    assert.deepEqual([at('localhost', unset), at('::', unset)], [['warn GOSSIP'], ['warn GOSSIP']]);
    assert.deepEqual(at('127.0.0.1', { ...unset, p2pPort: 4025 }), ['warn GOSSIP']);
    assert.deepEqual([at('127.0.0.1', open), at('localhost', { ...unset, gossip: false })], [[], []]);
    const facts = factsOf('core', {}, { host: '::', announceUrl, config: unset });
    assert.match(find(facts, 'GOSSIP').mend!, /SKERRY_CORE_P2P_HOST=:: and SKERRY_CORE_P2P_PORT=4025/);
  });

  test('the URL and the gossip of a core node are those of its settings', async () => {
    const urls = { SKERRY_CORE_URLS: 'https://core.example.org,https://other.example.org' };
    const closed = await readRole('core', urls);
    assert.equal(closed.announceUrl, 'https://core.example.org');
    assert.equal(find(factsOf('core', {}, closed), 'GOSSIP').outcome, 'warn');
    const set = { SKERRY_CORE_P2P_HOST: '::', SKERRY_CORE_P2P_PORT: '4025' };
    const open = await readRole('core', { ...urls, ...set });
    assert.equal(find(factsOf('core', {}, open), 'GOSSIP').outcome, 'ok');
    assert.deepEqual(
      open.ports.map(({ host, port }) => [host, port]),
      [
        ['localhost', 4024],
        ['::', 4025],
      ],
    );
  });

  test('a gateway without IPv6 reaches no instance, unless they are in its own network', () => {
    const at = (ownAddresses: string[], config = {}) =>
      notOk(decide(factsOf('gateway', { ownAddresses }, { domain: 'apps.example.org', config })));
    assert.deepEqual(at(['203.0.113.9', '::1', 'fe80::1', 'fd00::1']), ['warn IPV6']);
    assert.deepEqual(at(['203.0.113.9', '2a00:1:2:3::1']), []);
    assert.deepEqual(at(['10.0.0.1'], { allowPrivate: true }), []);
  });

  test('a prefix that is not routed', () => {
    const at = (verdict: Attempt['verdict'], isRunning = false) =>
      notOk(
        decide(
          factsOf(
            'compute',
            { prefix: attempt(verdict, '2a00:1:2:3::/64'), isRunning },
            { ipv6Prefix: '2a00:1:2:3::/64' },
          ),
        ),
      );
    assert.deepEqual(at('NO_ANSWER'), ['fail PREFIX_NOT_ROUTED']);
    assert.deepEqual(at('NOT_PUBLIC'), ['warn PREFIX_PRIVATE']);
    assert.deepEqual([at('UNASKED'), at('UNASKED', true)], [['warn PREFIX_UNCHECKED'], []]);
    assert.deepEqual(notOk(decide(factsOf('compute'))), ['warn PREFIX']);
  });

  test('a domain without its wildcard record', () => {
    const at = (...addresses: string[]) => {
      const name = { name: 'a.apps.example.org', addresses };
      const facts = factsOf('gateway', { name }, { domain: 'apps.example.org' });
      const check = decide(facts).at(-1)!;
      return `${check.outcome} ${check.code} ${check.mend ?? ''}`;
    };
    assert.match(at(), /^fail NO_RECORD Add the record: \*\.apps\.example\.org\. A /);
    assert.match(at('198.51.100.7'), /^fail WRONG_RECORD Change the record/);
    assert.match(at('203.0.113.9'), /^ok RECORD/);
    assert.deepEqual(notOk(decide(factsOf('gateway', {}, { domain: 'skerry.localhost' }))), ['warn DOMAIN']);
  });

  test('groups, a line for each, and what mends it beneath', () => {
    const checks = decide(factsOf('core', { places: [attempt('NO_CONNECTION')] }));
    const text = renderChecks(checks, (_style, words) => words);
    assert.match(text, /^This server\n {2}✓ Linux/);
    assert.match(
      text,
      /Seen from outside\n {2}✗ others cannot connect.*\n {6}The daemon must listen on.*: nft .* accept\n {6}docs\/guides\/core-node\.md$/,
    );
    assert.equal(renderSummary('core', checks), 'This server lacks 1 of what a core node needs.');
  });
});

test('whoever is to name another core node is told how, by the command that asks', () => {
  const dead: NetworkFacts = { ...NETWORK, failure: 'nobody is there', info: undefined };
  for (const another of ['with --core', 'as the argument of join']) {
    const silent = find(factsOf('core', { network: dead, another }), 'CORE_NODE');
    assert.match(silent.mend ?? '', new RegExp(`^Name another ${another}, or`));
    const inside = factsOf('core', { places: [attempt('NOT_PUBLIC')], another });
    assert.ok(find(inside, 'NOT_PUBLIC').mend?.includes(`your network ${another}, or`));
  }
});
