import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commandOf, decideIdentity, mayTraverse } from './identity.ts';
import { fitsSocket, SOCKET_PATH_BYTES_MAX, shortSocketDirOf } from './layout.ts';
import { decideLeftover } from './leftover.ts';
import { parseServerLine } from './output.ts';
import { parseStat, readProcess } from './process.ts';
import { argumentsOf, decideSettings } from './settings.ts';

describe('who PostgreSQL runs as', () => {
  const alice = { uid: 1000, gid: 1000 };
  const root = { uid: 0, gid: 0 };
  const cases = [
    [
      'an ordinary user: itself',
      { euid: 1000, clusterOwner: undefined, userNamespaces: false },
      { kind: 'self' },
    ],
    [
      'an ordinary user, another one’s cluster: itself, and the start will say so',
      { euid: 1000, clusterOwner: root, userNamespaces: true },
      { kind: 'self' },
    ],
    [
      'root: a user namespace',
      { euid: 0, clusterOwner: undefined, userNamespaces: true },
      { kind: 'user-namespace' },
    ],
    [
      'root, its own cluster: a user namespace',
      { euid: 0, clusterOwner: root, userNamespaces: true },
      { kind: 'user-namespace' },
    ],
    [
      'root without user namespaces: nobody',
      { euid: 0, clusterOwner: root, userNamespaces: false },
      { kind: 'user', uid: 65534, gid: 65534 },
    ],
    [
      'root, a cluster that alice made: alice',
      { euid: 0, clusterOwner: alice, userNamespaces: true },
      { kind: 'user', ...alice },
    ],
  ] as const;
  for (const [name, facts, expected] of cases) {
    test(name, () => assert.deepEqual(decideIdentity(facts), expected));
  }

  test('the command line ends with its parent, whoever runs it', () => {
    const self = commandOf({ kind: 'self' }, 'INT', ['postgres', '-D', 'x']);
    assert.deepEqual([self.program, ...self.args], ['setpriv', '--pdeathsig', 'INT', 'postgres', '-D', 'x']);
    const inNamespace = commandOf({ kind: 'user-namespace' }, 'KILL', ['initdb']);
    assert.equal(inNamespace.program, 'unshare');
    assert.deepEqual(inNamespace.args.slice(-4), ['setpriv', '--pdeathsig', 'KILL', 'initdb']);
    assert.deepEqual(commandOf({ kind: 'user', uid: 7, gid: 8 }, 'INT', ['postgres']).owner, {
      uid: 7,
      gid: 8,
    });
  });

  test('one class of permission counts: the owner’s, else the group’s, else that of others', () => {
    const who = { uid: 7, gid: 8 };
    assert.ok(mayTraverse({ mode: 0o700, uid: 7, gid: 0 }, who));
    assert.ok(!mayTraverse({ mode: 0o077, uid: 7, gid: 8 }, who));
    assert.ok(mayTraverse({ mode: 0o010, uid: 0, gid: 8 }, who));
    assert.ok(!mayTraverse({ mode: 0o701, uid: 0, gid: 8 }, who));
    assert.ok(mayTraverse({ mode: 0o701, uid: 0, gid: 0 }, who));
    assert.ok(!mayTraverse({ mode: 0o700, uid: 0, gid: 0 }, who));
  });
});

describe('what a postmaster.pid means', () => {
  const server = {
    pid: 5,
    zombie: false,
    startTicks: '1',
    program: 'postgres',
    workingDirectory: '/data/cluster',
  };
  const decide = (facts: typeof server | undefined | object) =>
    decideLeftover(5, facts as typeof server | undefined, '/data/cluster').kind;
  test('a server in this cluster is running', () => assert.equal(decide(server), 'running'));
  test('no process, or a dead one', () => {
    assert.equal(decide(undefined), 'stale');
    assert.equal(decide({ ...server, zombie: true }), 'stale');
  });
  test('another program, or a server of another cluster', () => {
    assert.equal(decide({ ...server, program: 'node' }), 'stale');
    assert.equal(decide({ ...server, workingDirectory: '/other' }), 'stale');
  });
  test('a process that cannot be looked into counts as running', () => {
    assert.equal(decide({ ...server, program: undefined, workingDirectory: undefined }), 'running');
  });
});

test('a process name may hold spaces and parentheses', () => {
  const stat = `42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1000 100 0\n`;
  assert.deepEqual(parseStat(stat), { zombie: false, startTicks: '98765' });
  assert.equal(readProcess(process.pid)?.zombie, false);
  assert.equal(readProcess(-1), undefined);
  assert.equal(readProcess(Number.NaN), undefined);
});

test('a socket path fits up to 107 bytes, counted in UTF-8', () => {
  const nameBytes = '/.s.PGSQL.5432'.length;
  assert.ok(fitsSocket(`/${'a'.repeat(SOCKET_PATH_BYTES_MAX - nameBytes - 1)}`));
  assert.ok(!fitsSocket(`/${'a'.repeat(SOCKET_PATH_BYTES_MAX - nameBytes)}`));
  assert.ok(!fitsSocket(`/${'ü'.repeat(60)}`));
  assert.ok(fitsSocket(shortSocketDirOf(`/${'a'.repeat(4000)}`, 1000)));
  assert.notEqual(shortSocketDirOf('/a', 1), shortSocketDirOf('/a', 2));
});

test('settings follow the memory within bounds and quote the directory', () => {
  assert.equal(decideSettings(256, '/run').shared_buffers, '32MB');
  assert.equal(decideSettings(2048, '/run').shared_buffers, '64MB');
  assert.equal(decideSettings(65_536, '/run').shared_buffers, '128MB');
  assert.equal(decideSettings(1024, '/a, "b"').unix_socket_directories, '"/a, ""b"""');
  assert.deepEqual(argumentsOf({ fsync: 'on', port: '1' }), ['-c', 'fsync=on', '-c', 'port=1']);
});

test('server output is levelled by its severity', () => {
  assert.deepEqual(parseServerLine('LOG:  ready'), { level: 'debug', message: 'ready' });
  assert.deepEqual(parseServerLine('PANIC:  no space'), { level: 'error', message: 'no space' });
  assert.deepEqual(parseServerLine('WARNING:  odd'), { level: 'warn', message: 'odd' });
  const loader = 'postgres: error while loading shared libraries: x';
  assert.deepEqual(parseServerLine(loader), { level: 'debug', message: loader });
  assert.deepEqual(parseServerLine('constructor: x'), { level: 'debug', message: 'constructor: x' });
});
