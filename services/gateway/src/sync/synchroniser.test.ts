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
