import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '@skerry/kit';
import type { AppError } from '@skerry/protocol';
import { coreConfig } from './config.ts';
import { ipfsPeerConfig } from './ipfs-peer/config.ts';
import { coreKeeping } from './keeping.ts';

test('peers are URLs without a password, or multiaddrs, and whom the node trusts are addresses: what is not is refused with its setting', () => {
  const id = '12D3KooWGRUQcXtF5X9mpXRLqTzZyAtP3q7xJqNvZVvYtF9qTest';
  const good = `HTTP://A.example:4024/, https://b.example, /dns4/c.example/tcp/4025/p2p/${id}`;
  assert.deepEqual(readConfig(coreConfig, { SKERRY_CORE_PEERS: good }).peers, [
    ...['http://a.example:4024', 'https://b.example', `/dns4/c.example/tcp/4025/p2p/${id}`],
  ]);
  for (const bad of [
    'http://u:hunter2@a:1',
    '127.0.0.1:15024',
    'example.org:4024',
    'http://a?key=hunter2',
    '/dns4/a',
  ])
    assert.throws(
      () => readConfig(coreConfig, { SKERRY_CORE_PEERS: `http://good, ${bad}` }),
      ({ code, message }: AppError) =>
        code === 'INVALID_CONFIG' &&
        message.startsWith('SKERRY_CORE_PEERS: expected http(s)://host:port') &&
        !message.includes('hunter2'),
      bad,
    );
  for (const name of [
    'SCHEDULERS',
    'SCORING_PUBLISHERS',
    'CREDIT_PUBLISHERS',
    'KNOWN_CORE_NODES',
    'NODE_LIST_OWNER',
  ])
    assert.throws(() => readConfig(coreConfig, { [`SKERRY_CORE_${name}`]: '0x12' }), {
      code: 'INVALID_CONFIG',
      message: `SKERRY_CORE_${name}: an address is 0x and 40 hexadecimal digits, not "0x12"`,
    });
  for (const name of ['IPFS_RPC_URL', 'IPFS_GATEWAYS', 'S3_ENDPOINT', 'S3_PUBLIC_ENDPOINT'])
    for (const bad of [
      'http://u:hunter2@a',
      's3.example',
      ...(name.startsWith('S3') ? ['http://a/path'] : []),
    ])
      assert.throws(
        () => readConfig(coreConfig, { [`SKERRY_CORE_${name}`]: bad }),
        ({ message }: AppError) =>
          message.startsWith(`SKERRY_CORE_${name}: `) && !message.includes('hunter2'),
        `${name} ${bad}`,
      );
});

test('the IPFS peer refuses what is no multiaddr; "none" are its first peers', () => {
  assert.deepEqual(readConfig(ipfsPeerConfig, { SKERRY_IPFS_BOOTSTRAP: 'none' }).bootstrap, []);
  for (const name of ['LISTEN', 'ANNOUNCE', 'BOOTSTRAP', 'ROUTERS'])
    assert.throws(() => readConfig(ipfsPeerConfig, { [`SKERRY_IPFS_${name}`]: 'a.example:4001' }), {
      code: 'INVALID_CONFIG',
    });
});

test('a backup that cannot tell which wallets pay for archives is not made without them', async () => {
  const config = readConfig(coreConfig, { SKERRY_CORE_ANCHOR_FILE: '/nowhere/anchors.json' });
  await assert.rejects(coreKeeping.elsewhere!(config), { code: 'INVALID_CONFIG' });
});
