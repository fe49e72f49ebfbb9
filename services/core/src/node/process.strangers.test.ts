import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger, readConfig } from '@skerry/kit';
import { coreConfig } from '../config.ts';
import { startCore } from '../core.ts';
import { MIGRATIONS, signers } from '../testing/core.ts';
import { startNode } from '../testing/node.ts';

const log = createLogger('test', 'silent');
/** The migration that brought the table of keys. */
const KEYS_NOTED = 33;
const ROUNDS = 6;
const TOGETHER = 3;

async function createHome(t: TestContext): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'skerry-together-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  return home;
}

test('F10: first starts on one database all serve, every time', async (t) => {
  const home = await createHome(t);
  for (let round = 0; round < ROUNDS; round++) {
    await using database = await createTestDatabase({ log });
    const configs = Array.from({ length: TOGETHER }, () =>
      readConfig(coreConfig, {
        SKERRY_HOME: join(home, String(round)),
        SKERRY_CORE_PORT: '0',
        SKERRY_CORE_HOST: '127.0.0.1',
        SKERRY_CORE_SCORING_PUBLISHERS: signers.monitor.address,
        SKERRY_CORE_CREDIT_PUBLISHERS: signers.credit.address,
        DATABASE_URL: database.url,
      }),
    );
    const { signal } = new AbortController();
    const started = await Promise.allSettled(configs.map((config) => startCore(config, { log, signal })));
    try {
      const failures = started.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
      assert.deepEqual(failures, [], `round ${round}`);
    } finally {
      for (const one of started) if (one.status === 'fulfilled') await one.value[Symbol.asyncDispose]();
    }
  }
});

test('F10: a core node that somebody has the port of leaves no database behind', async (t) => {
  const home = await createHome(t);
  const other = createServer();
  await once(other.listen(0, '127.0.0.1'), 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const config = readConfig(coreConfig, {
    SKERRY_HOME: home,
    SKERRY_CORE_PORT: String(port),
    SKERRY_CORE_HOST: '127.0.0.1',
  });
  const { signal } = new AbortController();
  await assert.rejects(startCore(config, { log, signal }), { code: 'PORT_IN_USE', details: { port } });
  assert.deepEqual(await readdir(home), []);
});

test('F10: a core node that cannot start releases what it took and ends its process', async (t) => {
  await using database = await createTestDatabase({ log });
  const home = await createHome(t);
  const first = await startNode(home, database.url);
  t.after(() => first.end('SIGKILL'));
  // Almost everything is built by the time when this one finds that somebody has its port for gossip.
  const port = new URL(first.url).port;
  await assert.rejects(
    startNode(home, database.url, { SKERRY_CORE_P2P_PORT: port }),
    /ended with 1 before it was ready/,
  );
  await assert.rejects(
    startNode(home, database.url, {
      SKERRY_CORE_PEERS: 'http://localhost:1',
      SKERRY_CORE_INDEXER_FILE: join(home, 'nothing.json'),
    }),
    /ended with 2 before it was ready/,
  );
  await first.end('SIGTERM');
});

test('a core node whose keys are gone from its directory does not become another node, unless it is told that they are lost', async (t) => {
  await using database = await createTestDatabase({ log });
  const start = (home: string, settings?: Record<string, string>) => startNode(home, database.url, settings);
  const home = await createHome(t);
  const keyOf = (name: string) => join(home, 'data', 'core', name);
  await (await start(home)).end('SIGTERM');
  const node = await readFile(keyOf('node.key'), 'utf8');
  // On another machine, or where the disk with the data directory is not mounted.
  await assert.rejects(start(await createHome(t)), /ended with 2 before/);
  await rm(keyOf('vrf-keys.json'));
  await assert.rejects(start(home), /ended with 2 before/);
  await rm(keyOf('node.key'));
  await assert.rejects(start(home, { SKERRY_CORE_LOST_KEYS: 'vrf-keys.json' }), /ended with 2 before/);
  await writeFile(keyOf('node.key'), node, { mode: 0o600 });
  await (await start(home, { SKERRY_CORE_LOST_KEYS: 'vrf-keys.json' })).end('SIGTERM');
  await (await start(home)).end('SIGTERM');
});

test('two core nodes whose data directories were mixed up do not go on as each other, unless they are told that keys were replaced', async (t) => {
  await using mine = await createTestDatabase({ log });
  await using others = await createTestDatabase({ log });
  const [home, otherHome] = [await createHome(t), await createHome(t)];
  await (await startNode(home, mine.url)).end('SIGTERM');
  await (await startNode(otherHome, others.url)).end('SIGTERM');
  const expectRefusal = (at: string) =>
    assert.rejects(
      startNode(at, mine.url).then((node) => node.end('SIGKILL')),
      /ended with 2 before/,
    );
  await expectRefusal(otherHome);
  const keyOf = (of: string, name: string) => join(of, 'data', 'core', name);
  await copyFile(keyOf(otherHome, 'sealing.key'), keyOf(home, 'sealing.key'));
  await expectRefusal(home);
  // A new key for random values is no other node's: those before it are kept.
  const settings = { SKERRY_CORE_LOST_KEYS: 'sealing.key', SKERRY_CORE_VRF_KEY_EPOCH: '2' };
  await (await startNode(home, mine.url, settings)).end('SIGTERM');
});

test("nothing is changed in another node's database, not even brought up to date", async (t) => {
  const home = await createHome(t);
  await using mine = await createTestDatabase({ log });
  await (await startNode(home, mine.url)).end('SIGTERM');
  // Of the release that began to note keys.
  const migrations = await createHome(t);
  for (const name of (await readdir(MIGRATIONS)).filter((one) => Number(one.slice(0, 3)) <= KEYS_NOTED))
    await copyFile(join(MIGRATIONS, name), join(migrations, name));
  await using others = await createTestDatabase({ migrations, log });
  const [name, fingerprint] = ['node.key', signers.otherNode.address];
  await others.pool.query('insert into key_files (name, fingerprint) values ($1, $2)', [name, fingerprint]);
  await assert.rejects(
    startNode(home, others.url).then((node) => node.end('SIGKILL')),
    /ended with 2 before/,
  );
  const { rows } = await others.pool.query('select max(version)::int as version from schema_migrations');
  assert.equal(rows[0].version, KEYS_NOTED);
});
