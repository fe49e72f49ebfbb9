import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseEvmAddress } from '@skerry/protocol';
import type { TrustView } from '@skerry/protocol/api/core/node';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import type { NodeView } from '@skerry/protocol/api/scheduler';
import { standingOf, standingOfCore } from './counted.ts';
import { leaveSteps } from './leave-plan.ts';
import { nextSteps } from './next-steps.ts';
import type { RoleSettings } from './roles.ts';
import { mergeSettings } from './settings-text.ts';
import { describeTrust, servicesVariables, trustVariables } from './trust.ts';
import { judgeStart, parseUnitEnvironment, parseUnitState } from './units.ts';

describe('a settings file', () => {
  const file = '# where to listen\n#SKERRY_CORE_HOST=localhost\n\nSKERRY_CORE_NAME=mine\n# last\n';

  test('comments and other lines stay; what is only shown gets its line below', () => {
    assert.equal(
      mergeSettings(file, {
        SKERRY_CORE_HOST: '::',
        SKERRY_CORE_NAME: 'other',
        SKERRY_CORE_PEERS: 'https://a.example',
      }),
      '# where to listen\n#SKERRY_CORE_HOST=localhost\nSKERRY_CORE_HOST=::\n\nSKERRY_CORE_NAME=other\n# last\nSKERRY_CORE_PEERS=https://a.example\n',
    );
  });

  test('the same again changes nothing; of several lines one stays', () => {
    const once = mergeSettings(file, { SKERRY_CORE_HOST: '::' });
    assert.equal(mergeSettings(once, { SKERRY_CORE_HOST: '::' }), once);
    assert.equal(mergeSettings('A=1\nB=2\nA=3', { A: '4' }), 'A=4\nB=2\n');
    assert.equal(mergeSettings('#A=1\nA = 2\nexport A =3', { A: '4' }), '#A=1\nA=4\n');
    assert.equal(mergeSettings('', { A: '' }), 'A=\n');
  });

  test('a value that a reader could take for something else is refused', () => {
    for (const value of ['a b', "a'", 'a"', 'a\nB=1', '$HOME', 'a\\', '`id`', 'a;b'])
      assert.throws(() => mergeSettings('', { A: value }), { code: 'INVALID_PARAMETERS' }, value);
  });
});

describe('whom a core node that joins believes', () => {
  const ADDRESS = `0x${'1'.repeat(40)}`;
  const unset = { value: [], source: 'unset' as const };
  const trust: TrustView = {
    schedulers: { value: [ADDRESS, 'x\nSKERRY_CORE_HOST=::'], source: 'setting' },
    scoring_publishers: { value: [], source: 'peers' },
    credit_publishers: unset,
    known_core_nodes: { value: [ADDRESS], source: 'setting' },
    credit_enforcement: { value: true, source: 'setting' },
  };

  test('what the network says becomes settings; what it leaves open is learned', () => {
    assert.deepEqual(trustVariables(trust), {
      SKERRY_CORE_SCHEDULERS: ADDRESS,
      SKERRY_CORE_SCORING_PUBLISHERS: 'none',
      SKERRY_CORE_CREDIT_ENFORCEMENT: 'yes',
    });
  });

  test('its services are told on, but for those of another machine alone, and never over what is set', () => {
    const services = { gateway: 'https://gateway.example', status: 'http://127.0.0.1:4031' };
    const told = { SKERRY_CORE_SERVICES: 'gateway=https://gateway.example' };
    assert.deepEqual(servicesVariables({ services }, {}), told);
    assert.deepEqual(
      servicesVariables({ services }, { SKERRY_CORE_SERVICES: 'status=https://a.example' }),
      {},
    );
    assert.deepEqual(servicesVariables({ services: { status: services.status } }, {}), {});
    assert.deepEqual(servicesVariables({}, {}), {});
  });

  test('it is shown before, and so is that anybody could have changed it', () => {
    const info = { ...{ node_multi_addresses: [], name: 'a', version: '1', address: ADDRESS }, trust };
    assert.match(describeTrust(info, 'https://a.example'), new RegExp(`schedulers: ${ADDRESS}`));
    assert.doesNotMatch(describeTrust(info, 'https://a.example'), /plain http/);
    assert.match(describeTrust(info, 'http://a.example'), /plain http/);
  });
});

test('what a scheduler’s word about a node comes to', () => {
  const { nodes } = SCHEDULER_EXAMPLES.listNodes!.answer as { readonly nodes: readonly [NodeView] };
  const [node] = nodes;
  const id = node.node_id;
  const reason = (code: string) => ({ ...node, healthy: false, reason: { code, message: 'so' } });
  assert.equal(standingOf(undefined, id).state, 'waiting');
  assert.deepEqual(standingOf(node, id).state, 'counted');
  const unmeasured = standingOf(reason('NODE_NOT_MEASURED'), id);
  assert.equal(unmeasured.state, 'known');
  // A scheduler lists nodes by their addresses, and takes no id.
  const steps = nextSteps({ role: 'compute' } as RoleSettings, unmeasured, {
    coreUrl: 'https://a.example',
    isUnit: true,
  });
  assert.match(steps[0]!, new RegExp(`put ${node.address} into SKERRY_SCHEDULER_NODES`));
  assert.equal(parseEvmAddress(node.address), node.address);
  assert.match(standingOf(reason('NODE_UNREACHABLE'), id).text, /does not use it yet: so/);
});

describe('a core node that is synced has joined', () => {
  const coreUrl = 'https://a.example';
  const digest = (name: string, posts = name, count = 1) => ({
    cursor: '0',
    messages: { count, digest: name },
    derived: { posts: { count: posts === '' ? 0 : count, digest: posts } },
  });
  const compare = (mine: ReturnType<typeof digest>, theirs = mine, kept = { mine: 9, theirs: 9 }) =>
    standingOfCore({ mine, theirs, kept, coreUrl, intervalSeconds: 120 });

  test('when it has the same, and has derived the same', () => {
    assert.deepEqual(compare(digest('a')), {
      state: 'counted',
      text: `synced, with the same digest as ${coreUrl}: 9 messages`,
    });
    assert.match(compare(digest('a', 'b'), digest('a', 'c')).text, /being derived: posts$/);
    assert.equal(compare(digest('a'), digest('b')).state, 'waiting');
  });

  test('also where others send faster than it asks: it says when the newest come', () => {
    const busy = { mine: 9, theirs: 10 };
    assert.deepEqual(compare(digest('a'), digest('b'), busy), {
      state: 'counted',
      text: `synced with ${coreUrl}: 9 messages; newer ones come every 120 s`,
    });
    assert.match(compare(digest('a', ''), digest('b'), busy).text, /being derived: posts$/);
  });
});

test('what a monitor is told to do next shows its own reports, of the network that it joined', () => {
  const id = `0x${'1'.repeat(40)}`;
  const standing = { state: 'counted', text: '', id } as const;
  const network = { coreUrl: 'https://a.example', isUnit: false };
  const steps = nextSteps({ role: 'monitor' } as RoleSettings, standing, network).join('\n');
  for (const words of [
    `skerry message list --address ${id} --channel net-scoring --core https://a.example`,
    `skerry score compute --publisher ${id} --core https://a.example`,
    'SKERRY_MONITOR_RELEASES',
    'SKERRY_MONITOR_ASN_FILE',
  ])
    assert.ok(steps.includes(words), words);
  const shown = nextSteps({ role: 'gateway' } as RoleSettings, standing, network);
  assert.ok(shown.every((step) => /: skerry domain \w+ NAME --core https:\/\/a\.example$/.test(step)));
});

test('whoever watches a core node that joined asks that one, and not the one at the usual port', () => {
  const port = { variable: 'SKERRY_CORE_PORT', host: '::', port: 5024, describe: 'API' };
  const settings = { role: 'core', host: '::', ports: [port] } as unknown as RoleSettings;
  const steps = nextSteps(
    settings,
    { state: 'counted', text: '' },
    { coreUrl: 'https://a.example', isUnit: false },
  );
  assert.ok(steps.includes('Watch it: skerry node status --core http://localhost:5024'), steps.join('\n'));
});

test('of what is to be done next, it is said what takes root: what reads the settings and data of a unit', () => {
  const standing = { state: 'counted', text: '', id: 'f'.repeat(64) } as const;
  const rootIn = (isUnit: boolean) =>
    nextSteps({ role: 'compute' } as RoleSettings, standing, { coreUrl: 'https://a.example', isUnit })
      .filter((step) => step.includes(', as root: '))
      .map((step) => step.split(': ').at(-1));
  assert.deepEqual(rootIn(true), ['skerry backup FILE --role compute', 'skerry leave --role compute']);
  assert.deepEqual(rootIn(false), []);
});

test('what leaving would do is told by step; what does not run is not emptied', () => {
  const settings = { role: 'compute' } as RoleSettings;
  const common = { settings, file: 'f.env', limitMs: 60_000, instances: ['a', 'b'] };
  const byHand = leaveSteps({ ...common, isUnit: false, presence: 'answers' });
  assert.equal(byHand[0], 'write SKERRY_COMPUTE_DRAIN=yes to f.env');
  assert.match(byHand[2]!, /until its instances have moved.*: a, b$/);
  assert.deepEqual(byHand.slice(3), [
    'ask you to end "skerry compute", and wait until it has ended',
    'take back what the node has announced',
  ]);
  assert.deepEqual(leaveSteps({ ...common, isUnit: true, presence: 'none' }), [
    'stop and disable skerry-compute',
    'take back what the node has announced',
  ]);
});

describe('a unit that is started', () => {
  const stateOf = (active: string, invocation: string, restarts = 0) =>
    parseUnitState(
      `ActiveState=${active}\nInvocationID=${invocation}\nNRestarts=${restarts}\nStatusText=busy = so\n`,
    );
  const before = stateOf('active', 'a');

  test('serves when its new process does, and not while the old one still runs', () => {
    assert.deepEqual(before, { active: 'active', invocation: 'a', restarts: 0, status: 'busy = so' });
    const seen = [before, stateOf('deactivating', 'a'), stateOf('activating', 'b'), stateOf('active', 'b')];
    assert.deepEqual(
      seen.map((now) => judgeStart(now, before)),
      ['starting', 'starting', 'starting', 'started'],
    );
  });

  test('has failed when systemd tries again, or tries no more', () => {
    assert.equal(judgeStart(stateOf('activating', 'b', 1), before), 'failed');
    assert.equal(judgeStart(stateOf('failed', 'b'), before), 'failed');
    // What went wrong before was before.
    assert.equal(judgeStart(stateOf('active', 'a', 3), stateOf('active', 'a', 3)), 'starting');
    assert.deepEqual(parseUnitState(''), { active: '', invocation: '', restarts: 0, status: '' });
  });
});

test('what a unit sets is read with its quotes, and what is no variable is left out', () => {
  const text = String.raw`XDG_DATA_HOME=/var/lib "SKERRY_CORE_NAME=the \"first\" node" lower=1 SKERRY_CORE_PORT=4024
`;
  assert.deepEqual(parseUnitEnvironment(text), {
    XDG_DATA_HOME: '/var/lib',
    SKERRY_CORE_NAME: 'the "first" node',
    SKERRY_CORE_PORT: '4024',
  });
  assert.deepEqual(parseUnitEnvironment('\n'), {});
});
