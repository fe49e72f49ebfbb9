import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { Ledger } from './load.ts';
import {
  addressOf,
  archiveScript,
  archivingConfig,
  coreRoles,
  databaseStatements,
  databaseUrl,
  etcdSettings,
  haproxyConfig,
  NAMES,
  patroniConfig,
} from './page.ts';

/** What `npm run soak -- failover` takes from docs/high-availability.md; 1 CPU second. */
describe('the page on high availability can be followed by a program', () => {
  const addresses = NAMES.map(addressOf);

  test('each server has a configuration of its own, of the same cluster, and none of the page’s addresses', () => {
    for (const name of NAMES) {
      const settings = etcdSettings(name, '/data');
      assert.equal(settings.ETCD_NAME, name);
      assert.equal(settings.ETCD_DATA_DIR, '/data');
      assert.equal(
        settings.ETCD_INITIAL_CLUSTER,
        NAMES.map((one) => `${one}=http://${addressOf(one)}:2380`).join(','),
      );
      const text = patroniConfig(name, '/data', true);
      assert.doesNotMatch(`${text}${Object.values(settings).join()}`, /192\.0\.2\.|\$(NAME|HERE)/);
      const { name: own, etcd, etcd3, bootstrap, postgresql } = parse(text);
      assert.equal(own, name);
      assert.equal(postgresql.listen, `${addressOf(name)}:5432`);
      assert.equal(etcd.hosts, addresses.map((one) => `${one}:2379`).join());
      // Patroni 3.0.2 takes the lock from another server by this one.
      assert.equal(etcd3, undefined);
      assert.equal(settings.ETCD_ENABLE_V2, 'true');
      const { synchronous_mode, synchronous_mode_strict, ttl, loop_wait, retry_timeout } = bootstrap.dcs;
      assert.deepEqual([synchronous_mode, synchronous_mode_strict], [true, true]);
      assert.ok(loop_wait + 2 * retry_timeout <= ttl, 'a primary gives up before its lock ends');
    }
  });

  test('an archive changes the last line of the configuration alone', () => {
    const config = patroniConfig('one', '/data', true);
    const { postgresql, ...rest } = parse(config);
    const archiving = parse(archivingConfig(config, '/data'));
    assert.deepEqual({ ...archiving, postgresql: { ...postgresql } }, { postgresql, ...rest });
    const { parameters, ...others } = archiving.postgresql;
    assert.deepEqual({ ...others, parameters: postgresql.parameters }, postgresql);
    assert.deepEqual(Object.keys(parameters), [
      'unix_socket_directories',
      'archive_mode',
      'archive_command',
      'archive_timeout',
    ]);
    assert.equal(parameters.unix_socket_directories, '/data');
  });

  test('a file that the archive has in another form holds it up on the newest timeline alone', (context) => {
    const directory = mkdtempSync(join(tmpdir(), 'skerry-archive-'));
    context.after(() => rmSync(directory, { recursive: true }));
    const archive = join(directory, 'pgbackrest-archive');
    writeFileSync(archive, archiveScript(), { mode: 0o755 });
    const refusing = '#!/bin/sh\ntest "$*" = "--stanza=skerry archive-push $PUSHED" && exit $CODE\nexit 99\n';
    writeFileSync(join(directory, 'pgbackrest'), refusing, { mode: 0o755 });
    /** How it ends where pgBackRest ends with a code. @param timelines that have a history */
    const save = (name: string, code: number, timelines: readonly string[]) => {
      const log = mkdtempSync(join(directory, 'pg_wal-'));
      const file = join(log, name);
      for (const each of [file, ...timelines.map((timeline) => join(log, `${timeline}.history`))])
        writeFileSync(each, '');
      const env = { PATH: `${directory}:${process.env.PATH}`, CODE: String(code), PUSHED: file };
      return spawnSync(archive, [file], { env }).status;
    };
    const [timelines, segment] = [['00000009', '0000000A', '00000002'], '0000000000000010'];
    assert.equal(save(`00000009${segment}`, 0, timelines), 0);
    assert.equal(save(`00000009${segment}`, 25, timelines), 25);
    assert.equal(save(`00000009${segment}`, 45, timelines), 0);
    assert.equal(save(`00000009${segment}.partial`, 45, timelines), 0);
    assert.equal(save(`0000000A${segment}`, 45, timelines), 45);
    assert.equal(save(`00000001${segment}`, 45, []), 45);
    assert.equal(save('00000009.history', 45, timelines), 45);
  });

  test('only both settings of synchronous replication change where it is left out', () => {
    const { dcs, ...rest } = parse(patroniConfig('one', '/data', true)).bootstrap;
    const without = parse(patroniConfig('one', '/data', false)).bootstrap;
    assert.deepEqual(without, {
      ...rest,
      dcs: { ...dcs, synchronous_mode: false, synchronous_mode_strict: false },
    });
  });

  test('core processes reach all servers by name, and by an HAProxy that asks each Patroni', () => {
    const hosts = new URL(databaseUrl('hosts').replace(addresses.join(), 'all'));
    const proxy = new URL(databaseUrl('HAProxy'));
    assert.equal(hosts.host, 'all');
    assert.deepEqual(
      [hosts.username, hosts.password, hosts.pathname],
      [proxy.username, proxy.password, proxy.pathname],
    );
    const config = haproxyConfig();
    assert.ok(config.includes(`bind ${proxy.host}\n`), config);
    assert.match(config, /^ {2}option httpchk OPTIONS \/primary$/m);
    assert.match(config, /^ {2}default-server check port 8008 .*on-marked-down shutdown-sessions$/m);
    assert.deepEqual(
      [...config.matchAll(/^ {2}server (\S+) (\S+)$/gm)].map(([, name, at]) => [name, at]),
      NAMES.map((name) => [name, `${addressOf(name)}:5432`]),
    );
    assert.deepEqual(
      databaseStatements().map((line) => line.split(' ').slice(0, 3).join(' ')),
      ['create role skerry', 'create database skerry'],
    );
    const { answer, write } = coreRoles();
    assert.deepEqual(new Set([...answer.split(','), ...write.split(',')]).size, 4);
  });
});

test('the longest time without an acknowledgement counts from the fault on, and to the end', () => {
  const ledger = new Ledger();
  for (const [atMs, node] of [
    [100, 0],
    [200, 0],
    [250, 1],
    [900, 0],
    [1_000, 0],
  ] as const)
    ledger.acknowledged.push({ hash: '', node, atMs });
  assert.equal(ledger.longestGap(0, 150, 1_000), 700);
  assert.equal(ledger.longestGap(0, 150, 2_000), 1_000);
  assert.equal(ledger.longestGap(1, 0, 300), 250);
  assert.equal(ledger.longestGap(1, 300, 500), 200);
});
