import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { TsDataPlane } from '../dataplane/ts/plane.ts';
import { InstanceTable } from '../table/table.ts';
import { Routing } from './routing.ts';
import { Synchroniser } from './synchroniser.ts';
import { TestingCore } from './testing/core.ts';

test('full syncs come one after another, whoever asks for them meanwhile, and callers share one that has not begun', async () => {
  await using core = await new TestingCore().open();
  const client = new CoreClient({ url: core.url });
  let reading = 0;
  let most = 0;
  const readAllInstances = async () => {
    most = Math.max(most, ++reading);
    return await client.readAllInstances().finally(() => reading--);
  };
  const explain = () => ({ code: 'HOSTNAME_NOT_FOUND', message: '' }) as const;
  const ports = { httpPort: 0, httpsPort: 0, upstreamHttpPort: 80, upstreamHttpsPort: 443 };
  await using plane = new TsDataPlane({ hosts: ['127.0.0.1'], ...ports, explain });
  const routing = new Routing(new InstanceTable('skerry.localhost'), plane, () => {});
  await using sync = new Synchroniser({
    source: { readAllInstances, events: (options) => client.events(options) },
    routing,
    policy: { allowLocal: true, allowPrivate: false },
    periodMs: 60_000,
    log: createLogger('test', 'silent'),
  });
  const first = sync.sync();
  // It has begun.
  while (reading === 0) await Promise.resolve();
  const asked = [sync.sync(true), sync.sync(), sync.sync(), sync.sync(true)] as const;
  await Promise.all([first, ...asked]);
  assert.equal(most, 1);
  assert.equal(core.lists, 3);
  core.failWith = 500;
  await assert.rejects(sync.sync(), { code: 'UPSTREAM_UNAVAILABLE' });
  core.failWith = undefined;
  assert.equal((await sync.sync()).added, 0);
});

test('what is wrong with an instance is said once, and not by each full sync, until it is another', async () => {
  await using core = await new TestingCore().open();
  const lines: { msg: string; ipv6?: string; why?: string }[] = [];
  const log = createLogger('test', 'warn', { write: (line: string) => void lines.push(JSON.parse(line)) });
  const explain = () => ({ code: 'HOSTNAME_NOT_FOUND', message: '' }) as const;
  const ports = { httpPort: 0, httpsPort: 0, upstreamHttpPort: 80, upstreamHttpsPort: 443 };
  await using plane = new TsDataPlane({ hosts: ['127.0.0.1'], ...ports, explain });
  await using sync = new Synchroniser({
    source: new CoreClient({ url: core.url }),
    routing: new Routing(new InstanceTable('skerry.localhost'), plane, () => {}),
    policy: { allowLocal: false, allowPrivate: false },
    periodMs: 60_000,
    log,
  });
  const said = () => lines.splice(0).map(({ msg, ipv6 }) => [msg, ipv6]);
  const unreadable = ['the core node has an instance that cannot be read', undefined];
  const notAllowed = (ipv6: string) => ['this address is not allowed', ipv6];
  core.putQuietly({ instance_id: 'nonsense' });
  core.putQuietly({ instance_id: 'e'.repeat(64), ipv6: '::1' });
  await sync.sync();
  assert.deepEqual(said().sort(), [notAllowed('::1'), unreadable].sort());
  await sync.sync();
  assert.deepEqual(said(), []);
  core.putQuietly({ instance_id: 'e'.repeat(64), ipv6: '::2' });
  core.putQuietly({ instance_id: 'no sense' });
  await sync.sync();
  assert.deepEqual(said().sort(), [notAllowed('::2'), unreadable].sort());
});
