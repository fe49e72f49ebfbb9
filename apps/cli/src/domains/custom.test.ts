import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainView } from '@skerry/protocol/api/compute/node';
import { skerryHere, succeedHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir, RUNNING } from '../testing/run.ts';
import { readDomain, renderDomain } from './custom.ts';

test('which records give a domain to its owner is not what a node says, but what follows from both', () => {
  const toldWith = (target: string): DomainView => ({
    ...{ name: 'www.example.org', owner: '0xa', item_hash: 'a'.repeat(64) },
    ...{ active: false, cname: false, owner_proof: 'unknown' },
    rules: [
      { name: 'cname', dns: { type: 'cname', name: 'www.example.org', value: target } },
      { name: 'owner_proof', dns: { type: 'txt', name: '_control.www.example.org', value: '0xevil' } },
    ],
  });
  const shown = renderDomain(readDomain(toldWith('www.example.org.zone.test')));
  assert.match(shown, /CNAME +www\.example\.org +www\.example\.org\.zone\.test +not found/);
  assert.match(shown, /TXT +_control\.www\.example\.org +0xa +no name server answers/);
  for (const target of ['', 'zone.test', 'www.example.org.', 'www.example.org.zone\u001b[2Jtest'])
    assert.throws(() => readDomain(toldWith(target)), { code: 'UNEXPECTED_ANSWER' });
});

const CONFIG = {
  ...{ DOMAIN_NAME: 'node.test', version: '1', references: { API_SERVER: '' } },
  ...{ security: {}, networking: {}, computing: {} },
};

/** A core node that knows one instance, and the node that runs it. */
const openNodes = (zone: string | null) => {
  const { instance_id: id, node_address: node } = RUNNING;
  return replying(({ pathname, origin }) => {
    if (pathname === `/api/v0/instances/${id}`) return RUNNING;
    if (pathname === '/api/v0/posts.json') {
      const content = {
        ...{ url: origin, ipv6_prefix: '', capacity: { cpu: 1, memory_mib: 1, disk_gib: 1 }, features: [] },
        ...{ version: '1', announced_at_ms: 1, reason: null },
      };
      return { posts: [{ address: node, content, item_hash: id }], pagination_per_page: 100 };
    }
    if (pathname === '/status/config') return { ...CONFIG, custom_domains: { zone } };
    return undefined;
  });
};
const ATTACH = ['domain', 'attach', 'www.example.org', RUNNING.instance_id];

test('a node that serves no custom domains is told at once, and nothing is claimed', async () => {
  await using home = await createTestDir();
  await using nodes = await openNodes(null);
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: nodes.url };
  const { code, err } = await skerryHere(environment, ATTACH);
  assert.equal(code, 4, err);
  assert.match(
    err,
    /serves no custom domains \(DOMAINS_NOT_SERVED\)\nhint: its operator must set SKERRY_COMPUTE_/,
  );
  assert.deepEqual(
    nodes.asked.filter((line) => !line.startsWith('GET')),
    [],
  );
});

test('nothing is claimed for an instance of somebody else: no node would look at it', async () => {
  await using home = await createTestDir();
  await using nodes = await openNodes('zone.test');
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: nodes.url };
  await succeedHere(environment, 'key', 'new');
  const { code, err } = await skerryHere(environment, ATTACH);
  assert.equal(code, 4, err);
  assert.match(err, new RegExp(`only the owner of .*, ${RUNNING.owner}, can attach .* \\(NOT_PERMITTED\\)`));
  assert.deepEqual(
    nodes.asked.filter((line) => !line.startsWith('GET')),
    [],
  );
});
