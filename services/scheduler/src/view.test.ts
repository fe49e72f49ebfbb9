import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError, type MessageView, nodeIdOf, sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import { parseAnnouncement } from './announcement.ts';
import { applyInstance, applyNode, createView, isSamePlacement, parseInstance } from './view.ts';

const SENDER = `0x${'a1'.repeat(20)}`;

const content = {
  url: 'http://[fd00:1::1]:4020/',
  ipv6_prefix: 'FD00:1::/64',
  capacity: { cpu: 4, memory_mib: 8192, disk_gib: 100 },
  features: ['kvm'],
  version: '0.1.0',
  announced_at_ms: 1_000_000,
  reason: null,
};

function messageOf(node: Record<string, unknown>, more: Partial<MessageView> = {}): MessageView {
  return {
    item_hash: sha256Hex('announcement'),
    chain: 'ETH',
    sender: SENDER,
    type: 'POST',
    channel: 'net-compute',
    timestamp: 1000,
    content: { type: 'net-node', content: { ...content, ...node } },
    signature: '',
    signed_text: '',
    confirmations: [],
    ...more,
  };
}

describe('an announcement', () => {
  test('becomes a node whose id follows from the signer', () => {
    assert.deepEqual(parseAnnouncement(messageOf({})), {
      nodeId: nodeIdOf(SENDER),
      address: SENDER,
      url: 'http://[fd00:1::1]:4020',
      ipv6Prefix: 'fd00:1::/64',
      capacity: { cpu: 4, memoryMib: 8192, diskGib: 100 },
      features: ['kvm'],
      version: '0.1.0',
      reason: null,
      announcedAtMs: 1_000_000,
      itemHash: sha256Hex('announcement'),
    });
  });

  test('may lack a prefix only where it says that the node can hold nothing', () => {
    const reason = { code: 'HOST_NOT_READY', message: 'no rights to make taps' };
    assert.equal(parseAnnouncement(messageOf({ ipv6_prefix: '', reason })).ipv6Prefix, null);
    assert.throws(() => parseAnnouncement(messageOf({ ipv6_prefix: '' })), AppError);
  });

  test('that is malformed, elsewhere or from an address that no node can have is refused', () => {
    const bad: MessageView[] = [
      messageOf({ url: 'ftp://node' }),
      messageOf({ url: 'http://user:pass@node/' }),
      messageOf({ url: 'http://node/?to=elsewhere' }),
      messageOf({ url: 'http://' }),
      messageOf({ ipv6_prefix: 'fd00::/56' }),
      messageOf({ ipv6_prefix: '10.0.0.0/64' }),
      messageOf({ capacity: { cpu: -1, memory_mib: 1, disk_gib: 1 } }),
      messageOf({ capacity: { cpu: 1.5, memory_mib: 1, disk_gib: 1 } }),
      messageOf({ node_id: nodeIdOf(SENDER) }),
      messageOf({}, { sender: 'tz1somebody' }),
      messageOf({}, { channel: 'elsewhere' }),
      messageOf({}, { content: { type: 'net-nodes', content } }),
      messageOf({}, { content: { type: 'net-node' } }),
      messageOf({}, { content: null }),
    ];
    for (const message of bad)
      assert.throws(() => parseAnnouncement(message), AppError, JSON.stringify(message.content));
  });
});

test('the newest announcement of a sender counts, whatever the order and however often they come', () => {
  const announcement = fc.record({
    announcedAtMs: fc.nat(3),
    version: fc.constantFrom('a', 'b', 'c'),
    who: fc.nat(2),
  });
  fc.assert(
    fc.property(fc.array(announcement, { maxLength: 12 }), fc.infiniteStream(fc.nat()), (list, keys) => {
      const nodes = list.map(({ announcedAtMs, version, who }) =>
        parseAnnouncement(
          messageOf(
            { version, announced_at_ms: announcedAtMs },
            {
              sender: `0x${String(who).repeat(40)}`,
              item_hash: sha256Hex(`${announcedAtMs} ${version} ${who}`),
            },
          ),
        ),
      );
      const shuffled = [...nodes, ...nodes]
        .map((node) => ({ node, key: keys.next().value as number }))
        .sort((a, b) => a.key - b.key);
      const [inOrder, anyOrder] = [createView(), createView()];
      for (const node of nodes) applyNode(inOrder, node);
      for (const { node } of shuffled) applyNode(anyOrder, node);
      const sorted = (view: typeof inOrder) => [...view.nodes].sort(([a], [b]) => (a < b ? -1 : 1));
      assert.deepEqual(sorted(anyOrder), sorted(inOrder));
    }),
  );
});

const instanceView = {
  instance_id: sha256Hex('instance'),
  owner: SENDER,
  name: 'web',
  description: '',
  cpu: 2,
  memory: 512,
  disk: 4,
  image: 'debian:12',
  ipv6: 'fd00::1',
  status: 'stopped' as const,
  created_at: 7,
  updated_at: 8,
  ssh_key: '',
  firewall: { allowedPorts: [22] },
  desired: 'running' as const,
  restart_id: null,
  node_id: nodeIdOf(SENDER),
  node_address: SENDER,
  phase: 'scheduled' as const,
  reason: null,
};

test('a date further ahead of its message than any clock may be outranks nothing that is said later', () => {
  const view = createView();
  const at = (timestamp: number, version: string, announced_at_ms: number) =>
    applyNode(
      view,
      parseAnnouncement(
        messageOf({ announced_at_ms, version }, { timestamp, item_hash: sha256Hex(`${timestamp}`) }),
      ),
    );
  assert.ok(at(1_000, 'a', 1_600_000), 'as far ahead as a core node allows');
  assert.ok(!at(1_001, 'b', 1_599_999));
  assert.ok(at(2_000, 'c', 2_000_000_000_000));
  assert.ok(at(2_001, 'd', 2_001_000));
});

test('a full registry takes no strangers, but every node that holds an instance or is more than announced', () => {
  const view = createView();
  const from = (digit: string) => parseAnnouncement(messageOf({}, { sender: `0x${digit.repeat(40)}` }));
  const none = () => false;
  assert.ok(applyNode(view, from('1'), none, 1));
  assert.ok(!applyNode(view, from('2'), none, 1));
  assert.ok(!applyNode(view, parseAnnouncement(messageOf({})), none, 1));
  applyInstance(view, parseInstance(instanceView));
  assert.ok(applyNode(view, parseAnnouncement(messageOf({})), none, 1));
  assert.equal(view.nodes.size, 2);
  assert.ok(applyNode(view, from('2'), ({ nodeId }) => nodeId === from('2').nodeId, 1));
});

test('an instance is what was told of it last; the reason of a placed one is not the scheduler’s', () => {
  const view = createView();
  applyInstance(view, parseInstance({ ...instanceView, node_id: null, node_address: null, ipv6: '' }));
  applyInstance(view, parseInstance(instanceView));
  const [told] = view.instances.values();
  assert.deepEqual(told, {
    instanceId: instanceView.instance_id,
    needs: { cpu: 2, memoryMib: 512, diskGib: 4 },
    createdAt: 7,
    nodeId: nodeIdOf(SENDER),
    nodeAddress: SENDER,
    ipv6: 'fd00::1',
    reason: null,
  });
  const failed = { ...told, reason: { code: 'VM_START_FAILED', message: 'no' } };
  assert.ok(isSamePlacement(told!, failed));
  assert.ok(!isSamePlacement(told!, { ...failed, ipv6: 'fd00::2' }));
});
