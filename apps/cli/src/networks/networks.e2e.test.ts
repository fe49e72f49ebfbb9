import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { PORTS } from '@skerry/devnet';
import { skerryPaths } from '@skerry/kit';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { startPerson } from '../testing/person.ts';
import { createTestDir } from '../testing/run.ts';
import { SKERRY } from '../testing/shell.ts';
import { noteLocal } from './local.ts';

/** A core node that says where its scheduler is, and nothing of the others; nothing listens on the discard port. */
const SCHEDULER = 'http://127.0.0.1:9';

test('one network at a time: added, used, shown, named, removed', async () => {
  await using home = await createTestDir();
  await using core = await startCore(home.path, { SKERRY_CORE_SERVICES: `scheduler=${SCHEDULER}/` });
  const url = core.url;
  const skerry = await startPerson(home.path, {});

  assert.equal((await skerry('network', 'add', 'bad name', url)).code, 2);
  assert.equal((await skerry('network', 'add', 'local', url)).code, 2);
  assert.equal((await skerry('network', 'add', 'away', 'http://127.0.0.1:9')).code, 5);
  const added = await skerry('network', 'add', 'test', url, '--credit', 'http://127.0.0.1:10');
  assert.equal(added.code, 0, added.err);
  assert.match(added.out, new RegExp(`^scheduler: ${SCHEDULER} \\(as its core node says\\)$`, 'm'));
  assert.match(added.out, /^credit: http:\/\/127\.0\.0\.1:10 \(as added\)$/m);
  assert.match(added.out, /^gateway: unknown$/m);
  assert.match(added.err, /"skerry network use test"/);

  // Named by an option, a variable, and as the current one.
  const status = async (...args: string[]) => {
    const { out } = await skerry('status', '--json', ...args);
    const { services } = JSON.parse(out) as { services: { service: string; url: string }[] };
    return Object.fromEntries(services.map((one) => [one.service, one.url]));
  };
  const expected = {
    core: url,
    scheduler: SCHEDULER,
    compute: '',
    gateway: '',
    credit: 'http://127.0.0.1:10',
    status: '',
  };
  assert.deepEqual(await status('--network', 'test'), expected);
  assert.deepEqual(await status('--core', url), { ...expected, credit: '' });
  // What nobody names may be there or not: it is not said to be down.
  const seen = await skerry('status', '--core', url);
  assert.equal(seen.code, 5);
  for (const [service, state] of Object.entries({ core: 'up', scheduler: 'down', gateway: 'unknown' }))
    assert.match(seen.out, new RegExp(`^${service} +${state} `, 'm'));
  // Of a network that runs here it says which daemons do not stay.
  {
    await using local = await noteLocal(skerryPaths({ SKERRY_HOME: home.path }).data, url);
    await local.noteRestart('monitor', Date.now());
    const told =
      /^monitor was restarted once since the network started, last at .*; logs\/skerry\.log says how it ended, /m;
    assert.match((await skerry('status')).err, told);
    assert.doesNotMatch((await skerry('status', '--core', 'http://127.0.0.1:9')).err, told);
  }
  assert.equal((await skerry('network', 'use', 'test')).code, 0);
  assert.deepEqual(await status(), expected);
  const nodes = await skerry('scheduler', 'nodes', '--json');
  assert.match(nodes.err, /127\.0\.0\.1:9 does not answer/);
  const unknown = await skerry('credit', 'purchases', '--core', url, '--json');
  assert.equal((JSON.parse(unknown.err) as { code: string }).code, 'SERVICE_UNKNOWN');

  // What is changed is changed on a network that is told.
  await skerry('key', 'new');
  const posted = await skerry('message', 'post', '--type', 'POST', '--content', '{"type":"note"}');
  assert.deepEqual([posted.code, posted.err], [0, `network test (${url})\n`]);
  assert.equal((await skerry('message', 'list')).err, '');

  const listed = JSON.parse((await skerry('network', 'list', '--json')).out) as {
    name: string;
    current: boolean;
  }[];
  assert.deepEqual(
    listed.map(({ name, current }) => [name, current]),
    [
      ['local', false],
      ['test', true],
    ],
  );
  const removed = await skerry('network', 'remove', 'test');
  assert.deepEqual([removed.code, removed.err], [0, 'commands work on local again\n']);
  assert.match((await skerry('network', 'list')).out, /^\* +local /m);
});

test('down finds a network that was killed while it started', async () => {
  await using home = await createTestDir();
  const dataDir = join(home.path, 'elsewhere');
  const environment = { PATH: process.env.PATH, HOME: home.path, SKERRY_HOME: home.path };
  const ports = Object.values(PORTS).flatMap(({ flag }) => [flag, '0']);
  const child = spawn(process.execPath, [SKERRY, 'up', '--json', '--data-dir', dataDir, ...ports], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  for await (const line of createInterface({ input: child.stderr })) {
    if (line.includes('starting a network')) child.kill('SIGKILL');
  }
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  const { out, err } = await skerryHere(environment, ['down', '--json']);
  assert.equal((JSON.parse(out) as { data_dir: string }).data_dir, dataDir, err);
});
