import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createHttpServer, createLogger, createReach, listen, serve } from '@skerry/kit';
import { answerNames } from '@skerry/kit/testing/dns';
import { until } from '@skerry/kit/testing/until';
import { AppError, type InstanceView } from '@skerry/protocol';
import { AGGREGATES_API } from '@skerry/protocol/api/core/aggregates';
import { wantedOf } from '../instances/wanted.ts';
import { DomainRegistry, type NamedInstance } from './registry.ts';

const HONEST = `0x${'1'.repeat(40)}`;
const HOSTILE = `0x${'2'.repeat(40)}`;
const LATE = `0x${'3'.repeat(40)}`;
const log = createLogger('test', 'silent');

const instanceOf = (owner: string): NamedInstance => ({
  id: owner.at(-1)!.repeat(64),
  owner,
  ipv6: '2001:db8::1',
  ipv4: null,
});
const claimsOf = (owner: string, ...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { message_id: instanceOf(owner).id, type: 'instance' }]));

/** A core node that answers what owners claim, or refuses to, and a resolver that says nothing of names in `silent.test`. */
async function openWorld(...owners: readonly string[]) {
  await using stack = new AsyncDisposableStack();
  const claims = new Map<string, object | AppError>();
  const read: string[] = [];
  const app = stack.adopt(await createHttpServer({ log }), (server) => server.close());
  serve(app, AGGREGATES_API.listOwnedAggregates, ({ params: { address } }) => {
    read.push(address);
    const claimed = claims.get(address);
    if (claimed instanceof AppError) throw claimed;
    return { address, data: { domains: claimed ?? {} } };
  });
  const resolver = stack.use(
    await answerNames({ host: '127.0.0.1', port: 0 }, ({ name }) =>
      name.endsWith('silent.test') ? undefined : {},
    ),
  );
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-domains-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const instances = owners.map(instanceOf);
  const ending = new AbortController();
  const registry = new DomainRegistry({
    coreUrl: await listen(app, '127.0.0.1', 0),
    dataDir,
    rules: { zone: 'zone.test', resolvers: [resolver.address], mayReach: createReach(true) },
    instances: () => instances,
    log,
    signal: ending.signal,
  });
  const opened = stack.move();
  return {
    ...{ registry, claims, instances, dataDir },
    readsOf: (owner: string) => read.filter((one) => one === owner).length,
    names: () => registry.list().map(({ name }) => name),
    work: () => {
      const working = registry.work();
      return {
        async [Symbol.asyncDispose]() {
          ending.abort();
          await working;
        },
      };
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

test('the front beside the node is told which instances expect a header of the PROXY protocol', async () => {
  await using world = await openWorld(HONEST, LATE);
  const states = [HONEST, LATE].map((owner) => ({
    ...{ name: `www${owner.at(-1)}.test`, owner, instanceId: instanceOf(owner).id, isActive: true },
    proof: { cname: true, ownerProof: true },
  }));
  await writeFile(join(world.dataDir, 'domains.json'), JSON.stringify(states));
  await world.registry.load();
  const view = { firewall: { allowedPorts: [443], proxyProtocol: true } } as unknown as InstanceView;
  world.instances[1] = { ...instanceOf(LATE), proxyProtocol: wantedOf(view).proxyProtocol };
  const told = world.registry.routes(null).map(({ name, proxy_protocol }) => [name, proxy_protocol]);
  assert.deepEqual(told, [
    ['www1.test', undefined],
    ['www3.test', true],
  ]);
});

test('what a full disk did not take is written after the next look, though nothing changed', async () => {
  await using world = await openWorld(HONEST);
  world.claims.set(HONEST, claimsOf(HONEST, 'www.honest.test'));
  // It takes nothing, whoever asks.
  await rm(world.dataDir, { recursive: true });
  await world.registry.refresh();
  assert.deepEqual(world.names(), ['www.honest.test']);
  await mkdir(world.dataDir);
  await world.registry.refresh();
  const text = await readFile(join(world.dataDir, 'domains.json'), 'utf8');
  const stored = JSON.parse(text) as { name: string }[];
  assert.deepEqual(
    stored.map(({ name }) => name),
    ['www.honest.test'],
  );
});

test('custom domains that cannot be read from the disk are set aside, and asked for again', async () => {
  await using world = await openWorld(HONEST);
  const path = join(world.dataDir, 'domains.json');
  for (const text of ['', '[{"name":"www.hon', '{}', '[null]', '[{"name":"www.honest.test"}]']) {
    await writeFile(path, text);
    await world.registry.load();
    assert.deepEqual(world.names(), []);
    assert.equal(await readFile(`${path}.unreadable`, 'utf8'), text);
  }
  world.claims.set(HONEST, claimsOf(HONEST, 'www.honest.test'));
  await world.registry.refresh();
  assert.deepEqual(world.names(), ['www.honest.test']);
  await world.registry.load();
  assert.deepEqual(world.names(), ['www.honest.test'], 'what was stored since');
});

test('an owner whose claims the core node refuses to answer keeps nobody from theirs', async () => {
  await using world = await openWorld(HOSTILE, HONEST);
  world.claims.set(HONEST, claimsOf(HONEST, 'www.honest.test'));
  world.claims.set(HOSTILE, claimsOf(HOSTILE, 'www.hostile.test'));
  await world.registry.refresh();
  assert.deepEqual(world.names(), ['www.hostile.test', 'www.honest.test']);
  world.claims.set(HOSTILE, new AppError('LIST_TOO_COSTLY', 'more than 32 MiB'));
  world.claims.set(HONEST, claimsOf(HONEST, 'new.honest.test'));
  await world.registry.refresh();
  assert.deepEqual(world.names(), ['www.hostile.test', 'new.honest.test']);
});

test('an owner whose name servers say nothing keeps nobody waiting', async () => {
  await using world = await openWorld(HOSTILE, HONEST);
  const many = Array.from({ length: 100 }, (_, index) => `${'a.'.repeat(60)}${index}.silent.test`);
  world.claims.set(HOSTILE, claimsOf(HOSTILE, ...many));
  world.claims.set(HONEST, claimsOf(HONEST, 'www.honest.test'));
  await using _working = world.work();
  await until('the honest owner is looked at', world.names, (names) => names.includes('www.honest.test'), {
    limitMs: 30_000,
  });
});

test('whoever has no instance here makes the node ask nothing, and an owner no faster than it rests', async () => {
  await using world = await openWorld(HONEST);
  world.claims.set(HONEST, claimsOf(HONEST, 'www.honest.test'));
  world.claims.set(LATE, claimsOf(LATE, 'www.late.test'));
  const begunMs = performance.now();
  await using _working = world.work();
  await until('the first look is over', () => world.names().length === 1);
  for (let time = 0; time < 100; time++) {
    world.registry.wake(HOSTILE);
    await turn();
  }
  world.instances.push(instanceOf(LATE));
  world.registry.wake(LATE);
  await until('another owner is looked at', () => world.names().length === 2);
  assert.deepEqual([world.readsOf(HONEST), world.readsOf(HOSTILE), world.readsOf(LATE)], [1, 0, 1]);
  for (let time = 0; time < 100; time++) {
    world.registry.wake(HONEST);
    await turn();
  }
  await until('the owner is looked at again', () => world.readsOf(HONEST) > 1);
  assert.ok(world.readsOf(HONEST) <= 2 + (performance.now() - begunMs) / 2_000);
});
