import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readConfig } from '@skerry/kit';
import { hostnameOf, instanceAddress } from '@skerry/protocol';
import { until } from './dataplane/testing/suite/world.ts';
import { gatewayService } from './index.ts';
import { TestingCore } from './sync/testing/core.ts';
import { HASH, HOST, KEY, log, NAME, running, Scene } from './testing/scene.ts';

describe('gateway', () => {
  test('an instance is routed as soon as its address is told, and unrouted as soon as its owner stops it', async () => {
    await using scene = await Scene.open();
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    assert.match(await scene.visit(), /No instance known to this gateway/);
    scene.core.put({ instance_id: HASH });
    const known = async () => (await scene.api('/api/status')).body.instance_count === 1;
    while (!(await known()));
    assert.match(await scene.visit(), /no address yet.*scheduled/);
    scene.core.put(running);
    await scene.untilActive();
    assert.equal(await scene.visit(), `for ${HOST}`);
    scene.core.put({ instance_id: HASH, desired: 'stopped' });
    await scene.untilActive(false);
    assert.match(await scene.visit(), /stopped by its owner/);
  });

  test('lookup API', async () => {
    const begun = Date.now() / 1000;
    await using scene = await Scene.open();
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    const record = {
      instance_hash: HASH,
      subdomain: NAME,
      url: HOST,
      ipv6: '::1',
      active: true,
    };
    const found = await scene.api(`/api/lookup/${NAME.toUpperCase()}`, {
      headers: { origin: 'https://any.example' },
    });
    assert.deepEqual(found.body, record);
    assert.equal(found.headers.get('access-control-allow-origin'), '*');
    assert.deepEqual((await scene.api(`/api/hash/${HASH.toUpperCase()}`)).body, record);
    const unknown = 'f'.repeat(64);
    assert.deepEqual((await scene.api(`/api/hash/${unknown}`)).body, {
      instance_hash: unknown,
      subdomain: 'zoo-zoo-zoo-zoo',
      url: 'zoo-zoo-zoo-zoo.skerry.localhost',
      ipv6: null,
      active: false,
    });
    for (const [path, status, code] of [
      ['/api/hash/xyz', 400, 'INVALID_HASH'],
      [`/api/hash/${'a'.repeat(63)}`, 400, 'INVALID_HASH'],
      ['/api/lookup/a-b-c-d', 400, 'INVALID_HOSTNAME'],
      ['/api/lookup/zoo-zoo-zoo', 400, 'INVALID_HOSTNAME'],
      ['/api/lookup/zoo-zoo-zoo-zoo', 404, 'HOSTNAME_NOT_FOUND'],
      ['/api/nothing', 404, 'ROUTE_NOT_FOUND'],
    ] as const) {
      const refused = await scene.api(path);
      assert.deepEqual(
        [refused.status, refused.body.code, refused.body.status],
        [status, code, 'error'],
        path,
      );
    }
    const { body } = await scene.api('/api/status');
    assert.deepEqual([body.instance_count, body.route_count, body.domain], [1, 1, 'skerry.localhost']);
    const synced = body.last_sync_time as number;
    assert.ok(synced >= begun && synced <= Date.now() / 1000);
    assert.equal(body.http_port, Number(new URL(scene.urls[0]!).port));
  });

  test('it says whose it is by the id of its data directory, also after a restart', async () => {
    await using scene = await Scene.open();
    await using other = await Scene.open();
    const idOf = async (one: Scene) => {
      await one.start();
      const { body } = await one.api('/api/status');
      await one.stop();
      return body.id;
    };
    const id = await idOf(scene);
    assert.equal((await readFile(join(scene.dataDir, 'id'), 'utf8')).trim(), id);
    assert.equal(await idOf(scene), id);
    assert.notEqual(await idOf(other), id);
  });

  test('a preflight of any origin is allowed', async () => {
    await using scene = await Scene.open();
    await scene.start();
    const response = await fetch(`${scene.urls[2]}/api/status`, {
      method: 'OPTIONS',
      headers: { origin: 'https://any.example', 'access-control-request-method': 'GET' },
    });
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
    assert.match(response.headers.get('access-control-allow-methods') ?? '', /GET/);
  });

  test('POST /api/sync: 401 without a key, 403 with a wrong one, else what it did', async () => {
    await using scene = await Scene.open();
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    const none = await scene.api('/api/sync', { method: 'POST' });
    assert.deepEqual(
      [none.status, none.body.code, none.headers.get('www-authenticate')],
      [401, 'CREDENTIAL_REQUIRED', 'Bearer'],
    );
    assert.equal(
      (await scene.api('/api/sync', { method: 'POST', headers: { authorization: 'Basic x' } })).status,
      401,
    );
    assert.equal((await scene.sync(undefined, 'wrong')).status, 403);
    scene.core.putQuietly(running);
    const done = await scene.sync();
    assert.equal(done.status, 200);
    const { duration_ms, last_sync_time, id, ...rest } = done.body;
    const [http, https] = scene.urls.map((url) => Number(new URL(url).port));
    assert.deepEqual(rest, {
      instance_count: 1,
      route_count: 1,
      domain: 'skerry.localhost',
      http_port: http,
      https_port: https,
      added: 1,
      removed: 0,
      changed: 0,
    });
    assert.match(id as string, /^[0-9a-f]{32}$/);
    assert.ok((duration_ms as number) > 0 && (last_sync_time as number) > 0);
    assert.equal((await scene.sync(undefined, 'an-older-key')).body.added, 0);
    assert.equal((await scene.sync({ something: 1 })).status, 400);
    scene.core.failWith = 500;
    const failed = await scene.sync();
    assert.deepEqual([failed.status, failed.body.code], [503, 'UPSTREAM_UNAVAILABLE']);
    assert.equal((await scene.api('/api/status')).body.route_count, 1, 'keeping the last good table');
  });

  test('many pages; what changes while they are read is not undone', async () => {
    await using scene = await Scene.open();
    for (let i = 0; i < 250; i++)
      scene.core.putQuietly({ instance_id: i.toString(16).padStart(64, '0'), ipv6: '2001:db8::1' });
    scene.core.putQuietly({ ...running, ipv6: '' });
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    assert.equal((await scene.api('/api/status')).body.instance_count, 251);
    // Page 3 has the old view of it; the change is told before that page is read.
    let changed = false;
    const stale = { ...scene.core.instances.get(HASH)! };
    scene.core.onPage = (page) => {
      if (page === 1 && !changed) {
        changed = true;
        scene.core.put(running);
        scene.core.instances.set(HASH, stale);
      }
    };
    const { body } = await scene.sync();
    assert.equal(changed, true);
    assert.equal(body.changed, 0);
    await scene.untilActive();
  });

  test('an instance that is removed while everything is read stays removed', async () => {
    await using scene = await Scene.open();
    scene.core.putQuietly({ ...running, created_at: 2000 });
    for (let i = 0; i < 250; i++)
      scene.core.putQuietly({ instance_id: i.toString(16).padStart(64, '0'), ipv6: '2001:db8::1' });
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    await scene.untilActive();
    // The page that has it was read before; another one changes too, as in a busy network.
    scene.core.onPage = (page) => {
      if (page !== 2) return;
      scene.core.instances.delete(HASH);
      scene.core.tell('instance_removed', { instance_id: HASH });
      scene.core.put({ instance_id: '0'.repeat(64), ipv6: '2001:db8::2' });
    };
    assert.equal((await scene.sync()).body.removed, 0, 'no other one went with it');
    await until(async () => (await scene.api('/api/status')).body.instance_count === 250);
    assert.match(await scene.visit(), /No instance known to this gateway/);
  });

  test('a source that suddenly knows nothing empties nothing, unless an operator says so', async () => {
    await using scene = await Scene.open();
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    scene.core.put(running);
    await scene.untilActive();
    scene.core.forgetEverything();
    // Its cursors are not those of the new database: refused, so everything is read, and followed from there.
    await until(() => scene.core.streamsOpened >= 2);
    const held = await scene.sync();
    assert.deepEqual([held.body.removed, held.body.held_back, held.body.route_count], [0, 1, 1]);
    assert.equal(await scene.visit(), `for ${HOST}`);
    // The new database is followed all the same.
    const other = 'f'.repeat(64);
    scene.core.put({ instance_id: other, ipv6: '::1' });
    while ((await scene.api(`/api/hash/${other}`)).body.active !== true);
    const meant = await scene.sync({ accept_loss: true });
    assert.deepEqual([meant.body.removed, meant.body.route_count], [1, 1]);
  });

  test('it routes at once after a restart, with the core node away, and goes on where the stream was left', async () => {
    await using scene = await Scene.open();
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    await scene.stop();
    const { port } = new URL(scene.core.url);
    await scene.core[Symbol.asyncDispose]();
    await scene.start();
    assert.equal(await scene.visit(), `for ${HOST}`);
    assert.equal((await scene.api('/api/status')).body.route_count, 1);
    await using back = await new TestingCore().open(Number(port));
    back.putQuietly(running);
    await until(() => back.streamsOpened > 0);
    back.put({ instance_id: HASH, desired: 'stopped' });
    await scene.untilActive(false);
  });

  test('a lost stream is taken up again; what it lost is found by the next full sync', async () => {
    await using scene = await Scene.open({ SKERRY_GATEWAY_SYNC_INTERVAL_MS: '200' });
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    scene.core.breakStreams();
    scene.core.put(running);
    await scene.untilActive();
    scene.core.putQuietly({ instance_id: HASH, desired: 'stopped' });
    await scene.untilActive(false);
  });

  test('two instances of one name: the earlier has it, the later takes over when that is gone', async () => {
    await using scene = await Scene.open();
    const later = `${HASH.slice(0, 60)}0000`;
    assert.equal(hostnameOf(later), NAME);
    scene.core.putQuietly({ ...running, created_at: 1000 });
    scene.core.putQuietly({ ...running, instance_id: later, created_at: 2000 });
    await scene.start();
    await scene.untilActive();
    assert.equal((await scene.api(`/api/lookup/${NAME}`)).body.instance_hash, HASH);
    const lost = await scene.api(`/api/hash/${later}`);
    assert.deepEqual([lost.body.subdomain, lost.body.ipv6, lost.body.active], [NAME, '::1', false]);
    scene.core.instances.delete(HASH);
    const { body } = await scene.sync();
    assert.deepEqual([body.removed, body.route_count], [1, 1]);
    assert.equal((await scene.api(`/api/lookup/${NAME}`)).body.instance_hash, later);
    assert.equal((await scene.api(`/api/hash/${later}`)).body.active, true);
  });

  test('what a core node says wrongly is left out, and the rest is routed', async () => {
    await using scene = await Scene.open({ SKERRY_GATEWAY_ALLOW_LOCAL: 'no' });
    scene.core.putQuietly({ instance_id: 'nonsense' });
    scene.core.putQuietly({ instance_id: 'e'.repeat(64), ipv6: '::1' });
    scene.core.putQuietly({ instance_id: 'd'.repeat(64), ipv6: '2a00:db8:0:1:3:dddd:dddd:ddd1' });
    await scene.start();
    await until(() => scene.core.streamsOpened === 1);
    scene.core.tell('instance', { instance_id: 7 });
    scene.core.put({ instance_id: HASH, ipv6: instanceAddress('2a00:db8:0:2::/64', HASH).guest });
    await scene.untilActive();
    const { body } = await scene.api('/api/status');
    assert.deepEqual([body.instance_count, body.route_count], [3, 2]);
  });

  test('keys in a file are read again when the file changes', async () => {
    const scene = await Scene.open();
    await using _scene = scene;
    const file = join(scene.dataDir, 'keys');
    await writeFile(file, 'first-key\n');
    scene.settings.SKERRY_GATEWAY_API_KEY_FILE = file;
    await scene.start();
    const statusWith = async (key: string) => (await scene.sync(undefined, key)).status;
    assert.equal(await statusWith('first-key'), 200);
    await writeFile(file, 'second-key\n# first-key\n');
    while ((await statusWith('second-key')) !== 200);
    assert.equal(await statusWith('first-key'), 403);
    assert.equal(await statusWith(KEY), 200);
  });

  test('another gateway on the same data directory takes over, API and all', async () => {
    await using scene = await Scene.open();
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    await scene.untilStored();
    const [http, https, api] = scene.urls.map((url) => new URL(url).port);
    const config = readConfig(gatewayService.config, {
      ...scene.settings,
      SKERRY_GATEWAY_HTTP_PORT: http,
      SKERRY_GATEWAY_HTTPS_PORT: https,
      SKERRY_GATEWAY_API_PORT: api,
      SKERRY_GATEWAY_REPLACE: 'yes',
    });
    await using second = await gatewayService.start(config, { log, signal: new AbortController().signal });
    await scene.stopped;
    assert.equal(await scene.visit(), `for ${HOST}`);
    const status = await (await fetch(`${second.urls[2]}/api/status`)).json();
    assert.equal((status as { route_count: number }).route_count, 1);
  });

  test('its own API can listen for this machine alone while the other ports are open to everybody', async () => {
    await using scene = await Scene.open({
      SKERRY_GATEWAY_HOST: '::',
      SKERRY_GATEWAY_API_HOST: '127.0.0.2',
    });
    await scene.start();
    assert.equal((await scene.api('/api/status')).status, 200);
    const api = new URL(scene.urls[2]!);
    assert.equal(api.hostname, '127.0.0.2');
    await assert.rejects(fetch(`http://127.0.0.1:${api.port}/api/status`));
    assert.equal((await fetch(`http://127.0.0.3:${new URL(scene.urls[0]!).port}/`)).status, 404);
  });

  test('a port that is taken is said, and nothing is left open', async () => {
    await using scene = await Scene.open();
    await scene.start();
    const taken = new URL(scene.urls[1]!).port;
    const config = readConfig(gatewayService.config, { ...scene.settings, SKERRY_GATEWAY_HTTPS_PORT: taken });
    await assert.rejects(gatewayService.start(config, { log, signal: new AbortController().signal }), {
      code: 'PORT_IN_USE',
    });
  });
});
