import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkAnswers, variablesOf, withoutGossip } from './answers.ts';

const NOTHING = {
  coreUrl: 'https://core.example',
  announceUrl: undefined,
  prefix: undefined,
  domain: undefined,
};

test('answers become the settings of the role', () => {
  assert.deepEqual(
    variablesOf('compute', { ...NOTHING, announceUrl: 'http://203.0.113.9:5020', prefix: '2a00:1:2:3::/64' }),
    {
      SKERRY_COMPUTE_CORE_URL: 'https://core.example',
      SKERRY_COMPUTE_ANNOUNCE_URL: 'http://203.0.113.9:5020',
      SKERRY_COMPUTE_HOST: '::',
      SKERRY_COMPUTE_PORT: '5020',
      SKERRY_COMPUTE_IPV6_PREFIX: '2a00:1:2:3::/64',
    },
  );
  // Behind a proxy the daemon stays where it is.
  assert.deepEqual(variablesOf('core', { ...NOTHING, announceUrl: 'https://me.example' }), {
    SKERRY_CORE_PEERS: 'https://core.example',
    SKERRY_CORE_URLS: 'https://me.example',
    // Gossip passes by it.
    SKERRY_CORE_P2P_HOST: '::',
    SKERRY_CORE_P2P_PORT: '4025',
  });
  assert.deepEqual(withoutGossip(variablesOf('core', { ...NOTHING, announceUrl: 'https://me.example' })), {
    SKERRY_CORE_PEERS: 'https://core.example',
    SKERRY_CORE_URLS: 'https://me.example',
  });
  const given = { SKERRY_CORE_PEERS: 'https://a.example, https://core.example' };
  assert.deepEqual(variablesOf('core', NOTHING, given), {
    SKERRY_CORE_PEERS: 'https://a.example,https://core.example',
  });
  assert.deepEqual(variablesOf('gateway', { ...NOTHING, domain: 'apps.example' }), {
    SKERRY_GATEWAY_CORE_URL: 'https://core.example',
    SKERRY_GATEWAY_DOMAIN: 'apps.example',
    SKERRY_GATEWAY_HOST: '::',
    SKERRY_GATEWAY_HTTP_PORT: '80',
    SKERRY_GATEWAY_HTTPS_PORT: '443',
    SKERRY_GATEWAY_API_HOST: '127.0.0.1',
    SKERRY_GATEWAY_TRUSTED_PROXIES: '127.0.0.1,::1',
  });
  assert.deepEqual(variablesOf('monitor', NOTHING), { SKERRY_MONITOR_CORE_URL: 'https://core.example' });
});

test('answers are read in one spelling, and what a role has no use for is refused', () => {
  const prefix = '2A00:0001:2:3::/64';
  assert.equal(checkAnswers('compute', { ...NOTHING, prefix }).prefix, '2a00:1:2:3::/64');
  assert.equal(
    checkAnswers('gateway', { ...NOTHING, domain: '*.Apps.Example.org.' }).domain,
    'apps.example.org',
  );
  const code = { code: 'INVALID_PARAMETERS' };
  assert.throws(() => checkAnswers('compute', { ...NOTHING, prefix: '2a00::/48' }), code);
  assert.throws(() => checkAnswers('gateway', { ...NOTHING, domain: 'no domain' }), code);
  assert.throws(() => checkAnswers('monitor', { ...NOTHING, domain: 'a.example' }), code);
  assert.throws(() => checkAnswers('core', { ...NOTHING, announceUrl: 'http://u:p@a.example' }), code);
});
