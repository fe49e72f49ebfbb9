import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { type Seed, seedFiles } from './seed.ts';

const seed: Seed = {
  instanceId: 'iid-1',
  hostname: 'able-baker-charlie-delta',
  volumes: [],
  sshKeys: [
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE0 me: "quoted", {odd} #name',
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1 another',
  ],
  mac: '52:00:00:00:00:01',
  address: '2001:db8:1:2:3:5330:dcef:e181/124',
  ipv4: { network: '172.20.16.0/30', gateway: '172.20.16.1', guest: '172.20.16.2' },
  nameServers: ['2606:4700:4700::1111'],
};
const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

describe('seedFiles', () => {
  test('the key reaches the guest as it is, whatever YAML thinks of its characters', () => {
    const { 'user-data': text } = seedFiles(seed);
    assert.ok(text.startsWith('#cloud-config\n'));
    const data = JSON.parse(text.slice(text.indexOf('\n'))) as {
      users: { name: string; ssh_authorized_keys: string[] }[];
    };
    assert.deepEqual(
      data.users.map(({ name, ssh_authorized_keys }) => [name, ssh_authorized_keys]),
      [['root', seed.sshKeys]],
    );
  });

  test('one line for each file: nothing can start a line of its own', () => {
    const comment = fc.stringMatching(/^[ -~]{0,60}$/);
    fc.assert(
      fc.property(comment, (text) => {
        const files = seedFiles({ ...seed, sshKeys: [`ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE0 ${text}`] });
        assert.equal(files['user-data'].trimEnd().split('\n').length, 2);
        assert.equal(files['meta-data'].trimEnd().split('\n').length, 1);
      }),
    );
  });

  test('the network is static, by way of the link-local address of the node', () => {
    const { ethernets } = JSON.parse(seedFiles(seed)['network-config']) as {
      ethernets: { eth0: Record<string, unknown> };
    };
    assert.deepEqual(ethernets.eth0.addresses, [seed.address, '172.20.16.2/30']);
    assert.equal(ethernets.eth0.gateway4, '172.20.16.1');
    assert.equal(ethernets.eth0.gateway6, 'fe80::1');
  });

  test('a key with a line break, or that is no key, is refused', () => {
    for (const sshKey of [
      ' ',
      'x',
      `${seed.sshKeys[0]}\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE0 other`,
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE0\r\nx',
    ]) {
      assert.throws(
        () => seedFiles({ ...seed, sshKeys: [seed.sshKeys[0]!, sshKey] }),
        isError('INVALID_SSH_KEY'),
      );
    }
  });

  test('where nobody has a key, none is written', () => {
    const { users } = JSON.parse(
      seedFiles({ ...seed, sshKeys: [] })['user-data'].replace('#cloud-config\n', ''),
    );
    assert.deepEqual(users, [{ name: 'root', lock_passwd: false }]);
  });

  test('volumes are mounted at each boot, in the order in which they are attached', () => {
    const volumes = [
      { isReadOnly: true, mount: '/opt/a' },
      { isReadOnly: false, mount: null },
      { isReadOnly: false, mount: '/srv' },
    ];
    const { bootcmd } = JSON.parse(
      seedFiles({ ...seed, volumes })['user-data'].replace('#cloud-config\n', ''),
    );
    assert.deepEqual(bootcmd, [
      ['mkdir', '-p', '/opt/a'],
      ['mount', '-o', 'ro', '/dev/vdc', '/opt/a'],
      ['mkdir', '-p', '/srv'],
      ['mount', '-o', 'rw', '/dev/vde', '/srv'],
    ]);
  });

  test('anything else of the wrong form is refused', () => {
    const wrong: Partial<Seed>[] = [
      { hostname: 'a b' },
      { hostname: '' },
      { mac: '52:00' },
      { address: '10.0.0.1/24' },
      { nameServers: ['x'] },
    ];
    for (const change of wrong)
      assert.throws(() => seedFiles({ ...seed, ...change }), isError('INVALID_PARAMETERS'));
  });
});
