import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../errors.ts';
import { NETWORK_PARSERS, type NetworkType, parseNetworkType } from './content.ts';
import { convertNetworkContent } from './convert.ts';
import { CID0, CID1, HASH, head, SSH_KEY, samples } from './testing/setup.ts';

const TYPES = Object.keys(samples) as NetworkType[];

/** Type -> why -> a change of the sample. `undefined` takes a field away. */
type Changes = Readonly<Record<NetworkType, Readonly<Record<string, object>>>>;

function changed(type: NetworkType, change: object): unknown {
  return JSON.parse(JSON.stringify({ ...samples[type], ...change }));
}

const node = { node_hash: HASH };
const gpu = [{ vendor: 'v', device_name: 'd', device_class: '0300', device_id: '10de:1' }];
const many = (count: number) => Array.from({ length: count }, () => HASH);
const entries = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));

const volumes = [
  { ref: HASH },
  { ref: CID0, use_latest: false, mount: '/a', comment: null },
  { ephemeral: true, size_mib: 1000, mount: '/b' },
  { size_mib: 1_953_125, persistence: 'host', name: 'data', mount: '/c' },
  { size_mib: 1, parent: { ref: CID1 }, persistence: null },
];

const ACCEPTED: Changes = {
  POST: {
    'no content': { content: undefined },
    'content of any kind': { content: [1, null, 'x'] },
    'a ref': { ref: HASH },
    'no ref, said': { ref: null },
    'an amend': { type: 'amend', ref: HASH },
    'a whole message as ref': {
      ref: {
        ...{ chain: 'ETH', channel: null, item_content: '{}', item_hash: HASH, item_type: 'inline' },
        ...{ sender: 'x', signature: 'y', time: 1, type: 'POST' },
      },
    },
    'an address of no chain': { address: 'VM on executor' },
  },
  AGGREGATE: { 'a key in an object': { key: { name: 'k' } }, 'the key __proto__': { key: '__proto__' } },
  STORE: {
    'by CID': { item_type: 'ipfs', item_hash: CID1 },
    'all fields': {
      size: 0,
      content_type: 'a/b',
      ref: 'mine',
      metadata: { a: 1 },
      payment: { type: 'credit' },
    },
    'fields of no model': { mime_type: 'a/b', extra_fields: {}, estimated_size_mib: 1, tags: 3 },
  },
  FORGET: {
    'no reason': { reason: null },
    'a thousand of each': { hashes: many(1000), aggregates: many(1000) },
    'aggregates only': { hashes: [], aggregates: [CID0] },
  },
  PROGRAM: {
    'all of it': {
      metadata: entries(256),
      authorized_keys: [SSH_KEY],
      variables: entries(256),
      payment: { chain: 'ETH', receiver: null, type: 'superfluid' },
      data: { encoding: 'zip', mount: '/data', ref: HASH, use_latest: true },
      export: { encoding: 'plain', mount: '/out' },
      on: { http: false, message: [{ sender: 'x', channel: 'y' }], persistent: true },
      replaces: HASH,
    },
    'metadata as an empty list': { metadata: [] },
    'every kind of volume': { volumes },
    'resources by default': { resources: {} },
    'an interface and arguments': {
      code: { encoding: 'plain', entrypoint: 'x', ref: CID1, interface: 'binary', args: ['-v'] },
    },
  },
  INSTANCE: {
    'trusted execution': {
      environment: { hypervisor: 'qemu', trusted_execution: { firmware: HASH, policy: 1 } },
    },
    'a graphics processor': { requirements: { node, gpu } },
    'terms of a node': {
      payment: { type: 'credit' },
      requirements: { node: { ...node, terms_and_conditions: HASH } },
    },
    'requirements without payment': { requirements: { cpu: { architecture: 'x86_64', features: ['sev'] } } },
    'a pattern that never ends, never run': { requirements: { node: { address_regex: '(a+)+$' } } },
    ports: { resources: { published_ports: [{ protocol: 'udp', port: 65535 }] } },
  },
};

const everyMachine = {
  'metadata in a list': { metadata: [1] },
  'metadata that is long': { metadata: entries(257) },
  'too many variables': { variables: entries(257) },
  'a long name of a variable': { variables: { ['k'.repeat(129)]: 'v' } },
  'a long variable': { variables: { k: 'v'.repeat(4097) } },
  'a variable that is no text': { variables: { k: 1 } },
  'too many keys': { authorized_keys: many(257) },
  'a long key': { authorized_keys: ['k'.repeat(8193)] },
  'no processor': { resources: { vcpus: 0 } },
  'too many processors': { resources: { vcpus: 257 } },
  'half a MiB': { resources: { memory: 0.5 } },
  'too much memory': { resources: { memory: 1_048_577 } },
  'no seconds': { resources: { seconds: 0 } },
  'port 0': { resources: { published_ports: [{ protocol: 'tcp', port: 0 }] } },
  'another protocol': { resources: { published_ports: [{ protocol: 'sctp', port: 1 }] } },
  'a volume of nothing': { volumes: [{}] },
  'an ephemeral volume that is too large': { volumes: [{ ephemeral: true, size_mib: 1001 }] },
  'a persistent volume that is too large': { volumes: [{ size_mib: 1_953_126 }] },
  'too many volumes': { volumes: Array.from({ length: 257 }, () => ({ ref: HASH })) },
  'no allow_amend': { allow_amend: undefined },
  'a payment of another kind': { payment: { type: 'coins' } },
  'a long replaces': { replaces: 'x'.repeat(129) },
};

const REFUSED: Changes = {
  POST: {
    'no type': { type: undefined },
    'an amend of nothing': { type: 'amend' },
    'an amend of null': { type: 'amend', ref: null },
    'an amend of an empty text': { type: 'amend', ref: '' },
    'a ref to another type': { ref: { ...samples.POST, type: 'STORE', item_hash: HASH } },
    'a number as ref': { ref: 1 },
  },
  AGGREGATE: {
    'no key': { key: undefined },
    'an empty key': { key: '' },
    'a nameless key': { key: {} },
    'a list': { content: [] },
    'no content': { content: null },
  },
  STORE: {
    inline: { item_type: 'inline' },
    'a CID in storage': { item_hash: CID0 },
    'a SHA-256 in ipfs': { item_type: 'ipfs' },
    'a negative size': { size: -1 },
    'a payment by superfluid': { payment: { type: 'superfluid' } },
  },
  FORGET: {
    'too many': { hashes: many(1001) },
    'too many aggregates': { aggregates: many(1001) },
    'a key as aggregate': { aggregates: ['profile'] },
    'no hash': { hashes: ['x'] },
    'a long reason': { reason: 'x'.repeat(1001) },
  },
  PROGRAM: {
    ...everyMachine,
    'another type': { type: 'vm-instance' },
    'code without ref': { code: { encoding: 'zip', entrypoint: 'x' } },
    'code of another packing': { code: { encoding: 'tar', entrypoint: 'x', ref: HASH } },
    'no trigger': { on: {} },
  },
  INSTANCE: {
    ...everyMachine,
    'no root disk': { rootfs: undefined },
    'a root disk of nothing': { rootfs: { parent: { ref: HASH }, size_mib: 0 } },
    'trusted execution elsewhere': { environment: { hypervisor: 'firecracker', trusted_execution: {} } },
    'paid requirements without a node': { payment: { type: 'credit' }, requirements: {} },
    'a graphics processor anywhere': { requirements: { gpu } },
    'a graphics processor elsewhere': {
      environment: { hypervisor: 'firecracker' },
      requirements: { node, gpu },
    },
    'terms without payment': { requirements: { node: { ...node, terms_and_conditions: HASH } } },
  },
};

for (const type of TYPES) {
  describe(`${type} of the network form`, () => {
    test('is read as it is', () => {
      assert.deepEqual(NETWORK_PARSERS[type](samples[type]), samples[type]);
    });

    for (const [why, change] of Object.entries(ACCEPTED[type])) {
      test(`may have: ${why}`, () => {
        NETWORK_PARSERS[type](changed(type, change));
      });
    }

    for (const [why, change] of Object.entries({
      ...REFUSED[type],
      'no address': { address: undefined },
      'no time': { time: undefined },
      'a time as text': { time: '1' },
      'a time before 1970': { time: -1 },
    })) {
      test(`may not have: ${why}`, () => {
        assert.throws(
          () => NETWORK_PARSERS[type](changed(type, change)),
          (error) => error instanceof AppError && /^(INVALID_CONTENT|UNKNOWN_FIELD)$/.test(error.code),
        );
      });
    }
  });
}

test('unknown fields are refused everywhere, and dropped in STORE', () => {
  for (const type of TYPES.filter((one) => one !== 'STORE')) {
    assert.throws(() => NETWORK_PARSERS[type](changed(type, { colour: 1 })), { code: 'UNKNOWN_FIELD' });
  }
  const code = { ...samples.PROGRAM.code, colour: 1 };
  assert.throws(() => NETWORK_PARSERS.PROGRAM(changed('PROGRAM', { code })), { code: 'UNKNOWN_FIELD' });
  assert.deepEqual(NETWORK_PARSERS.STORE(changed('STORE', { colour: 1, __proto__: 2 })), samples.STORE);
});

test('a content fits one type at most: one item hash is never two kinds of message', () => {
  for (const type of TYPES) {
    for (const other of TYPES.filter((one) => one !== type)) {
      for (const change of [{}, ...Object.values(ACCEPTED[type])]) {
        assert.throws(() => NETWORK_PARSERS[other](changed(type, change)), AppError, `${type} as ${other}`);
      }
    }
  }
});

test('types', () => {
  for (const type of TYPES) assert.equal(parseNetworkType(type), type);
  for (const bad of ['', 'post', 'WEBHOOK', 'INSTANCE_UPDATE', 'V-PROGRAM', '__proto__', 'constructor']) {
    assert.throws(() => parseNetworkType(bad), { code: 'UNKNOWN_MESSAGE_TYPE' });
  }
});

test('an aggregate cannot carry __proto__ as a member', () => {
  const content = JSON.parse('{"__proto__":{"polluted":1}}');
  assert.throws(() => NETWORK_PARSERS.AGGREGATE({ ...head, key: 'k', content }), { code: 'INVALID_CONTENT' });
});

test('any content of any type is read or refused with an AppError', () => {
  const leaf = fc.oneof(
    fc.anything({ maxDepth: 2 }),
    fc.constantFrom(HASH, CID0, 1, true, null, 'zip', 'amend'),
  );
  const content = fc.constantFrom(...TYPES).chain((type) => {
    const sample = Object.entries(samples[type]);
    const fields = sample.map(([name, value]): [string, fc.Arbitrary<unknown>] => [
      name,
      fc.oneof({ arbitrary: fc.constant<unknown>(value), weight: 6 }, { arbitrary: leaf, weight: 1 }),
    ]);
    const extra = fc.oneof(
      fc.constant({}),
      fc.dictionary(fc.constantFrom('ref', 'tags', 'metadata', 'variables', 'requirements', 'payment'), leaf),
    );
    const record = fc.record(Object.fromEntries(fields), { requiredKeys: [] });
    return fc
      .tuple(fc.constant(type), record, extra)
      .map(([t, base, more]) => [t, { ...base, ...more }] as const);
  });
  fc.assert(
    fc.property(content, ([type, value]) => {
      try {
        assert.equal(convertNetworkContent(type, HASH, value).type, type);
      } catch (error) {
        assert.ok(error instanceof AppError, String(error));
      }
    }),
    { numRuns: 3000 },
  );
});
