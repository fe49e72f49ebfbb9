import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { createDataPlane } from '../choose.ts';
import { findObstacle } from './program.ts';

test('HAProxy that is missing or too old is an obstacle that says what to do', () => {
  assert.equal(
    findObstacle('/usr/sbin/haproxy', 'HAProxy version 2.6.12-1+deb12u4 2026/10/17', true),
    undefined,
  );
  assert.equal(findObstacle('/usr/sbin/haproxy', 'HAProxy version 3.0.1', false), undefined);
  assert.match(findObstacle(undefined, '', true)!, /missing: sudo apt-get install .*haproxy$/);
  assert.match(findObstacle(undefined, '', false)!, /missing: install it$/);
  for (const said of ['HA-Proxy version 1.8.4', 'HAProxy version 2.4.22', ''])
    assert.match(
      findObstacle('/opt/haproxy', said, true)!,
      /needs HAProxy 2\.6 or newer; \/opt\/haproxy says/,
    );
});

test('HAProxy is not asked for what it cannot do', async () => {
  const create = (quic: 'auto' | 'yes', replace: boolean) =>
    createDataPlane(
      {
        hosts: ['127.0.0.1'],
        httpPort: 0,
        httpsPort: 0,
        upstreamHttpPort: 80,
        upstreamHttpsPort: 443,
        explain: () => ({ code: 'HOSTNAME_NOT_FOUND', message: '' }),
        quic,
      },
      {
        kind: 'haproxy',
        cacheDir: '',
        program: undefined,
        programSha256: undefined,
        dataDir: '',
        handoverSocket: '',
        replace,
        replacedDrainMs: 0,
        onReplaced: () => {},
        installPackages: false,
        log: createLogger('test', 'silent'),
        signal: new AbortController().signal,
      },
    );
  await assert.rejects(create('yes', false), {
    code: 'INVALID_CONFIG',
    message: /cannot pass QUIC on without opening it/,
  });
  await assert.rejects(create('auto', true), { code: 'INVALID_CONFIG', message: /passes no connections/ });
});
