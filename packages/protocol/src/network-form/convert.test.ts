import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAggregateContent } from '../content/aggregate.ts';
import { parseForgetContent } from '../content/forget.ts';
import { parseInstanceContent } from '../content/instance.ts';
import { parsePostContent } from '../content/post.ts';
import { parseStoreContent } from '../content/store.ts';
import { LIMITS } from '../limits.ts';
import { NETWORK_PARSERS } from './content.ts';
import { convertNetworkContent, listInstanceShortfalls } from './convert.ts';
import { ADDRESS, CID0, CID1, HASH, head, SSH_KEY, samples } from './testing/setup.ts';

const convert = (type: string, value: object) => convertNetworkContent(type, HASH, value).content;
const instance = (change: object = {}) => convert('INSTANCE', { ...samples.INSTANCE, ...change });

test('POST: tags come from the inner content, a message as ref becomes its hash', () => {
  assert.deepEqual(convert('POST', samples.POST), {
    type: 'note',
    address: ADDRESS,
    content: { body: 'x', tags: ['a', 'b'] },
    tags: ['a', 'b'],
  });
  assert.deepEqual(convert('POST', { ...head, type: 'x', content: null, ref: null }), {
    type: 'x',
    address: ADDRESS,
    content: null,
  });
  const ref = { chain: 'ETH', item_hash: CID0, item_type: 'ipfs', sender: 'x', time: 1, type: 'POST' };
  assert.deepEqual(convert('POST', { ...head, type: 'amend', ref }), {
    type: 'amend',
    address: ADDRESS,
    ref: CID0,
  });
});

test('tags that are none are no fault', () => {
  const tagged = (tags: unknown) =>
    (convert('STORE', { ...samples.STORE, tags }) as { tags?: string[] }).tags;
  assert.deepEqual(tagged(['a', 1, '', 'a', 'x'.repeat(LIMITS.tagChars + 1), 'b']), ['a', 'b']);
  for (const tags of [undefined, null, 'a', {}, [], [1]]) assert.equal(tagged(tags), undefined);
  assert.equal(tagged(Array.from({ length: 100 }, (_, i) => `${i}`))?.length, LIMITS.tags);
});

test('AGGREGATE: a key is a text or an object with a name', () => {
  const content = { name: 'x' };
  assert.deepEqual(convert('AGGREGATE', samples.AGGREGATE), { key: 'profile', content, address: ADDRESS });
  assert.deepEqual(convert('AGGREGATE', { ...samples.AGGREGATE, key: { name: 'k' } }), {
    key: 'k',
    content,
    address: ADDRESS,
  });
});

test('STORE: storage or IPFS, ref and size kept', () => {
  assert.deepEqual(convert('STORE', { ...samples.STORE, size: null, ref: 'mine', mime_type: 'a/b' }), {
    item_type: 'storage',
    item_hash: HASH,
    address: ADDRESS,
    ref: 'mine',
  });
  const byCid = { ...head, item_type: 'ipfs', item_hash: CID1, size: 3, content_type: 'a/b' };
  assert.deepEqual(convert('STORE', byCid), {
    item_type: 'ipfs',
    item_hash: CID1,
    address: ADDRESS,
    size: 3,
    content_type: 'a/b',
  });
});

test('FORGET: both lists, each target once, at least one', () => {
  const both = { ...head, hashes: [HASH, CID0, HASH], aggregates: [CID0, CID1] };
  assert.deepEqual(convert('FORGET', both), { hashes: [HASH, CID0, CID1], address: ADDRESS });
  for (const aggregates of [undefined, null, []]) {
    assert.throws(() => convert('FORGET', { ...head, hashes: [], aggregates }), { code: 'INVALID_CONTENT' });
  }
});

test('INSTANCE: sizes in our units, the first key, the image by hash', () => {
  assert.deepEqual(instance(), {
    name: 'box',
    cpu: 2,
    memory: 2048,
    disk: 21,
    image: HASH,
    ssh_key: SSH_KEY,
    address: ADDRESS,
  });
  assert.deepEqual(instance({ resources: {} }), { ...(instance() as object), cpu: 1, memory: 128 });
  const rootfs = { parent: { ref: CID0 }, size_mib: 1 };
  assert.deepEqual(instance({ rootfs }), { ...(instance() as object), image: CID0, disk: 1 });
});

test('INSTANCE: a name that can be shown', () => {
  const named = (metadata: unknown) => (instance({ metadata }) as { name: string }).name;
  for (const metadata of [null, [], {}, { name: '' }, { name: '\n' }, { name: 7 }]) {
    assert.equal(named(metadata), 'instance-abababab');
  }
  assert.equal(named({ name: ' a\n\tb ' }), 'a b');
  assert.equal(named({ name: 'x'.repeat(100) }), 'x'.repeat(LIMITS.instanceNameChars));
  assert.equal(named({ name: `x${'😀'.repeat(100)}` }), `x${'😀'.repeat(31)}`);
  assert.deepEqual(instance({ metadata: { description: 'why' } }), {
    ...(instance() as object),
    name: 'instance-abababab',
    description: 'why',
  });
});

test('INSTANCE: published ports and ssh are open; without any, the default holds', () => {
  const ports = (published_ports: unknown) =>
    (instance({ resources: { ...samples.INSTANCE.resources, published_ports } }) as { firewall?: object })
      .firewall;
  const tcp = (port: number) => ({ protocol: 'tcp', port });
  assert.deepEqual(ports([tcp(443), tcp(80), tcp(22), tcp(80)]), { allowedPorts: [22, 443, 80] });
  const udp = (port: number) => ({ protocol: 'udp', port });
  assert.deepEqual(ports([udp(443), tcp(443), udp(53), udp(443)]), {
    allowedPorts: [22, 443],
    allowedUdpPorts: [443, 53],
  });
  for (const none of [undefined, null, []]) assert.equal(ports(none), undefined);
});

test('INSTANCE: what cannot be', () => {
  for (const ref of ['../etc/passwd', 'Debian', 'debian:', 'a b']) {
    const rootfs = { ...samples.INSTANCE.rootfs, parent: { ref } };
    assert.throws(() => instance({ rootfs }), { code: 'INVALID_CONTENT', message: /rootfs/ });
  }
  assert.throws(() => instance({ authorized_keys: ['no key'] }), { code: 'INVALID_SSH_KEY' });
  assert.throws(() => instance({ authorized_keys: [`${SSH_KEY}\n${SSH_KEY}`] }), { code: 'INVALID_SSH_KEY' });
  assert.throws(() => instance({ resources: { memory: 64 } }), {
    code: 'INVALID_CONTENT',
    message: /memory/,
  });
});

test('INSTANCE: an image by its name; nobody has to have a key', () => {
  const rootfs = { ...samples.INSTANCE.rootfs, parent: { ref: 'debian:12' } };
  assert.equal((instance({ rootfs }) as { image: string }).image, 'debian:12');
  for (const authorized_keys of [undefined, null, []])
    assert.equal((instance({ authorized_keys }) as { ssh_key: string }).ssh_key, '');
});

test('INSTANCE: volumes that are made for it are part of its disk', () => {
  const diskOf = (volumes: unknown) => (instance({ volumes }) as { disk: number }).disk;
  const made = { ephemeral: true, size_mib: 1000, mount: '/a' };
  assert.deepEqual([diskOf([]), diskOf([{ ref: HASH }]), diskOf([made, { size_mib: 1_048 }])], [21, 21, 23]);
  assert.throws(() => diskOf(Array(17).fill({ ref: HASH })), {
    code: 'INVALID_CONTENT',
    message: /16 volumes/,
  });
});

test('INSTANCE: what is asked for and not given is said', () => {
  const shortfalls = (change: object) =>
    listInstanceShortfalls(NETWORK_PARSERS.INSTANCE({ ...samples.INSTANCE, ...change }));
  assert.deepEqual(shortfalls({}), []);
  assert.match(shortfalls({ authorized_keys: [] }).join(), /^nobody can log in/);
  const ports = (protocol: string, count: number) =>
    Array.from({ length: count }, (_, index) => ({ protocol, port: index + 1 }));
  const publishing = (...published: object[][]) =>
    shortfalls({ resources: { ...samples.INSTANCE.resources, published_ports: published.flat() } });
  assert.deepEqual(publishing(ports('tcp', 64), ports('tcp', 64), ports('udp', 64)), []);
  assert.deepEqual(publishing(ports('tcp', 65), ports('udp', 66)), ['3 of 131 published ports are left out']);
  const all = shortfalls({
    authorized_keys: [SSH_KEY, SSH_KEY, 'no key'],
    volumes: [{ ref: HASH }, { parent: { ref: HASH }, size_mib: 1 }],
    variables: { A: '1' },
    environment: { hypervisor: 'qemu', internet: false, trusted_execution: {} },
    requirements: {
      node: { node_hash: HASH },
      gpu: [{ vendor: 'v', device_name: 'd', device_class: '0302', device_id: 'i' }],
    },
  });
  assert.equal(all.length, 7);
  assert.match(all[0]!, /^1 of 3 authorized keys/);
});

test('PROGRAM: a file with an entry point on a runtime that is an image', () => {
  assert.deepEqual(
    convert('PROGRAM', { ...samples.PROGRAM, metadata: { name: 'p' }, variables: { A: '1' } }),
    {
      name: 'p',
      description: '',
      code: { kind: 'file', ref: HASH, encoding: 'zip', entrypoint: 'main:app', useLatest: true },
      runtime: { kind: 'image', ref: HASH, useLatest: true },
      vcpus: 2,
      memoryMib: 2048,
      timeoutSeconds: 30,
      variables: { A: '1' },
      internet: true,
    },
  );
  const bare = {
    ...samples.PROGRAM,
    code: { encoding: 'plain', entrypoint: 'x', ref: CID0 },
    runtime: { ref: CID1 },
    resources: {},
    environment: {},
  };
  assert.deepEqual(convert('PROGRAM', bare), {
    name: 'program-abababab',
    description: '',
    code: { kind: 'file', ref: CID0, encoding: 'plain', entrypoint: 'x', useLatest: false },
    runtime: { kind: 'image', ref: CID1, useLatest: true },
    vcpus: 1,
    memoryMib: 128,
    timeoutSeconds: 1,
    variables: {},
    internet: false,
  });
});

test("what a conversion makes is a content of the specification's form", () => {
  parsePostContent(convert('POST', samples.POST));
  parseAggregateContent(convert('AGGREGATE', samples.AGGREGATE));
  parseStoreContent(convert('STORE', samples.STORE));
  parseForgetContent(convert('FORGET', samples.FORGET));
  parseInstanceContent(instance());
});
