import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hostnameOf, type ItemHash } from '@skerry/protocol';
import { GATEWAY_EXAMPLES } from '@skerry/protocol/api/examples/gateway';
import type { WhyRecord } from '@skerry/protocol/api/gateway';
import type { Instance } from './instance.ts';
import { InstanceTable } from './table.ts';
import { hashOf, instance } from './testing/setup.ts';
import { explainHttp3, explainWhy, isWorthProbing, type Probe, parseWhySubject } from './why.ts';

const DOMAIN = 'skerry.example';
const NAME = 'farm-manage-desk-seek';

function why(instances: Instance[], text = NAME, probes: Probe[] = []) {
  const table = new InstanceTable(DOMAIN);
  for (const one of instances) table.put(one);
  const subject = parseWhySubject(text, DOMAIN);
  return { ...explainWhy(table, subject, probes, undefined), isWorthProbing: isWorthProbing(table, subject) };
}

const OPEN: Probe = { port: 443, failure: null };
const CLOSED: Probe = { port: 443, failure: 'refused' };
const FULL: Probe = { port: 443, failure: 'gateway_full' };

describe('why a name answers or does not', () => {
  const cases: [string, Instance[], Probe[], string | null, RegExp][] = [
    ['unknown', [], [], 'message', /no instance that this gateway knows/],
    [
      'scheduled',
      [instance({ ipv6: null, phase: 'scheduled' })],
      [],
      'allocation',
      /no address yet.*scheduled/,
    ],
    [
      'starting',
      [instance({ phase: 'starting', reason: 'it boots' })],
      [CLOSED],
      'phase',
      /starting.*it boots/,
    ],
    ['stopped', [instance({ desired: 'stopped', phase: 'stopped' })], [], 'desired', /stopped by its owner/],
    [
      'port closed',
      [instance()],
      [CLOSED, { port: 80, failure: 'refused' }],
      'connection',
      /443: refused, port 80/,
    ],
    ['not known, since the gateway lacks ports', [instance()], [FULL], null, /^$/],
    ['answers', [instance()], [CLOSED, { ...OPEN, port: 80 }], null, /^$/],
    ['answers ahead of what its node says', [instance({ phase: 'starting' })], [OPEN], null, /^$/],
  ];
  for (const [what, instances, probes, step, message] of cases) {
    test(what, () => {
      const { steps, missing } = why(instances, NAME, probes);
      assert.match(missing?.message ?? '', message);
      if (step) assert.equal(steps.find(({ ok }) => ok === false)?.step, step);
      else assert.equal(missing, null);
    });
  }

  test('collision lost: told of the hash that lost, while the name is the earlier one', () => {
    const earlier = instance({ createdAt: 1 });
    const later = instance({ hash: `${hashOf('5330dcefe18', '7')}7` as Instance['hash'], createdAt: 2 });
    const lost = why([later, earlier], later.hash);
    assert.match(lost.missing!.message, new RegExp(`collision lost.*${earlier.hash}`));
    assert.equal(lost.isWorthProbing, undefined);
    assert.equal(why([later, earlier]).instanceHash, earlier.hash);
    assert.equal(why([later, earlier]).isWorthProbing?.hash, earlier.hash);
  });

  test('HTTP/3: forwarded or not, asked for or not, answered or not', () => {
    const plain = instance();
    const told = (...args: Parameters<typeof explainHttp3>) => {
      const { ok, detail } = explainHttp3(...args);
      return `${ok}: ${detail}`;
    };
    assert.equal(
      told('it is off', plain, OPEN, undefined),
      'null: this gateway does not forward QUIC: it is off',
    );
    assert.match(told(null, instance({ proxyHeader: true }), OPEN, undefined), /^false: .*PROXY protocol/);
    assert.equal(told(null, undefined, undefined, undefined), 'null: not tried');
    const answers = 'true: UDP port 443: answers';
    assert.equal(told(null, plain, OPEN, undefined), answers);
    assert.match(told(null, plain, CLOSED, undefined), /^false: UDP port 443: refused; .*udp:443/);
    assert.equal(told(null, plain, OPEN, { answeredAt: 2, refusedAt: 1 }), answers);
    assert.equal(
      told(null, plain, OPEN, { answeredAt: 2, refusedAt: 60 }),
      `${answers}; it has answered no client since 1970-01-01T00:00:02.000Z, so most are refused, the last at 1970-01-01T00:01:00.000Z`,
    );
    assert.match(
      told(null, plain, CLOSED, { answeredAt: null, refusedAt: 60 }),
      /udp:443 among its ports; it has answered no client so far, so most are refused/,
    );
  });

  test('the example of the contract is what is told of an instance that no node has room for', () => {
    const shown = GATEWAY_EXAMPLES.explainDomain!.answer as WhyRecord;
    const hash = shown.instance_hash as ItemHash;
    const subdomain = hostnameOf(hash);
    const table = new InstanceTable(shown.hostname.slice(subdomain.length + 1));
    table.put(
      instance({
        hash,
        createdAt: Date.UTC(2026, 0, 2, 3, 4, 5) / 1000,
        placed: false,
        ipv6: null,
        phase: 'scheduled',
        reasonCode: 'NO_CAPACITY',
        reason: 'needs 2048 MiB of memory, the only node has 1024 MiB free',
      }),
    );
    const subject = parseWhySubject(shown.hostname, table.domain);
    const { hostname, instanceHash, ipv6, steps, missing } = explainWhy(table, subject, [], undefined);
    const http3 = explainHttp3('SKERRY_GATEWAY_QUIC is no', undefined, undefined, undefined);
    assert.deepEqual({ hostname, instance_hash: instanceHash, ipv6, chain: steps, missing, http3 }, shown);
  });

  test('a name is taken with or without the domain, in any case; anything else is refused', () => {
    for (const text of [NAME, NAME.toUpperCase(), `${NAME}.${DOMAIN}`, `${NAME}.${DOMAIN}.`])
      assert.equal(parseWhySubject(text, DOMAIN).subdomain, NAME);
    assert.throws(() => parseWhySubject('not-a-name', DOMAIN), { code: 'INVALID_HOSTNAME' });
    assert.throws(() => parseWhySubject(`${NAME}.elsewhere.example`, DOMAIN), { code: 'INVALID_HOSTNAME' });
  });
});
