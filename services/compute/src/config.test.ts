import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { test } from 'node:test';
import { readConfig } from '@skerry/kit';
import { computeConfig } from './config.ts';

const read = (settings: Record<string, string>) => readConfig(computeConfig, settings);

test('the zone of custom domains is what a CNAME to it says, however it is written', () => {
  assert.equal(read({}).domainZone, undefined);
  const zone = 'instance.example.net';
  for (const text of [zone, `${zone}.`, 'Instance.Example.NET'])
    assert.equal(read({ SKERRY_COMPUTE_DOMAIN_ZONE: text }).domainZone, zone, text);
  for (const text of ['https://instance.example.net', '*.example.net', 'a..b', '.'])
    assert.throws(() => read({ SKERRY_COMPUTE_DOMAIN_ZONE: text }), {
      code: 'INVALID_CONFIG',
      message: `SKERRY_COMPUTE_DOMAIN_ZONE: expected a domain name, such as example.org, not ${JSON.stringify(text)}`,
    });
});

test('resolvers are addresses: another one is refused at the start, and not when a name or a machine needs it', () => {
  const good = ['9.9.9.9', '127.0.0.1:5353', '2620:fe::fe', '[2620:fe::fe]:5353'];
  const { domainResolvers } = read({ SKERRY_COMPUTE_DOMAIN_RESOLVERS: good.join(', ') });
  assert.deepEqual(domainResolvers, good);
  new Resolver().setServers(domainResolvers);
  for (const name of ['DOMAIN_RESOLVERS', 'NAME_SERVERS'].map((name) => `SKERRY_COMPUTE_${name}`))
    for (const text of ['dns.example.org', '9.9.9', '[2620:fe::fe', '9.9.9.9:dns'])
      assert.throws(
        () => read({ [name]: `1.1.1.1,${text}` }),
        ({ message }: Error) => {
          assert.ok(message.startsWith(`${name}: expected `) && message.endsWith(`, not "${text}"`), message);
          return true;
        },
      );
  assert.throws(() => read({ SKERRY_COMPUTE_NAME_SERVERS: '1.1.1.1:53' }), { code: 'INVALID_CONFIG' });
});
