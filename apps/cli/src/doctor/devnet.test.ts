import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { takeDataDir } from '@skerry/kit';
import type { Context } from '../context.ts';
import { readDevnetSettings } from '../joining/devnet.ts';
import { noteLocal } from '../networks/local.ts';
import { skerryHere } from '../testing/here.ts';
import { NODE_CONFIG } from '../testing/namesake.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';

interface Result {
  readonly role: string;
  readonly checks: readonly { readonly code: string; readonly text: string }[];
}

test('where no node is set up, the doctor looks at those of "skerry up", unless one is to join', async () => {
  await using home = await createTestDir();
  const dataDir = join(home.path, 'network');
  const own = join(dataDir, 'compute');
  await mkdir(own, { recursive: true });
  await using node = await replying((_url, response) => {
    response.setHeader('server', 'skerry/test');
    return NODE_CONFIG;
  });
  const place = { dataDir, urls: { compute: node.url, gatewayApi: node.url } };
  await using _network = await noteLocal(join(home.path, 'data'), 'http://127.0.0.1:9', place);
  using _working = await takeDataDir(own);
  const environment = { PATH: process.env.PATH, SKERRY_HOME: home.path, HOME: home.path };
  const ask = async (...args: string[]) => {
    const { out } = await skerryHere(environment, ['doctor', '--json', ...args]);
    return JSON.parse(out) as Result[];
  };
  const textsOf = ({ checks }: Result, code: string) =>
    checks.filter((check) => check.code === code).map(({ text }) => text);

  for (const args of [[], ['--role', 'compute']]) {
    const results = await ask(...args);
    assert.deepEqual(
      results.map(({ role }) => role),
      ['compute'],
    );
    const [found] = results as [Result];
    assert.deepEqual(textsOf(found, 'DATA'), [`data in ${own}`]);
    assert.deepEqual(textsOf(found, 'PORT_IN_USE'), []);
    const { port } = new URL(node.url);
    assert.ok(
      textsOf(found, 'PORT').some(
        (text) => text.startsWith(`port ${port} `) && text.endsWith('the daemon listens already'),
      ),
    );
    assert.match(textsOf(found, 'CORE_NODE')[0]!, /127\.0\.0\.1:9 does not answer/);
  }
  const [joining] = await ask('--role', 'compute', '--announce-url', 'http://203.0.113.9:4020');
  assert.doesNotMatch(textsOf(joining!, 'DATA')[0]!, /network/);
});

test('a daemon of "skerry up" that listens at an IPv6 address is asked there', async () => {
  await using home = await createTestDir();
  const paths = { config: home.path, data: join(home.path, 'data') };
  const dataDir = join(home.path, 'network');
  await mkdir(join(dataDir, 'compute'), { recursive: true });
  const place = { dataDir, urls: { compute: 'http://[::1]:4020' } };
  await using _network = await noteLocal(paths.data, 'http://127.0.0.1:9', place);
  using _working = await takeDataDir(join(dataDir, 'compute'));
  const settings = await readDevnetSettings({ paths } as Pick<Context, 'paths'>, 'compute');
  assert.deepEqual([settings?.SKERRY_COMPUTE_HOST, settings?.SKERRY_COMPUTE_PORT], ['::1', '4020']);
});

test('of several roles each is told by its name before what is looked at for it', async () => {
  await using home = await createTestDir();
  const doctor = (...args: string[]) => skerryHere({ SKERRY_HOME: home.path }, ['doctor', ...args]);
  const { out } = await doctor('--role', 'core', '--role', 'monitor');
  assert.match(out, /^core node\n\nThis server\n(?:.*\n)*\nmonitor node\n\nThis server\n/);
  assert.match((await doctor('--role', 'monitor')).out, /^This server\n/);
});
