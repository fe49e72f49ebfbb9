import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceView } from '@skerry/protocol';
import { Planner } from './planning/planner.ts';
import { nodeAt, size, standingOf } from './planning/testing/setup.ts';
import { countedRoom, decideTrust } from './planning/trust.ts';
import { parseInstance } from './view.ts';

const node = nodeAt(0, size(1, 4_096, 100));
const OPTIONS = { cpuOvercommit: 1, manages: () => true };

const view = (id: string, changes: Partial<InstanceView> = {}): InstanceView => ({
  ...{ instance_id: id.repeat(64), owner: '0x1', name: 'a', description: '', cpu: 1, memory: 512, disk: 4 },
  ...{ image: 'debian:12', ipv6: '', status: 'stopped', created_at: 1, updated_at: 1, ssh_key: '' },
  ...{ firewall: { allowedPorts: [] }, desired: 'running', restart_id: null, node_id: null },
  ...{ node_address: null, phase: 'scheduled', reason: null },
  ...changes,
});

test('S5: what no node can start gets no node, and says so', () => {
  const planner = new Planner(OPTIONS);
  planner.setNode(node, standingOf(node));
  planner.setInstance(parseInstance(view('a', { image: 'fedora' })));
  planner.setInstance(parseInstance(view('b', { created_at: 2 })));
  const decisions = planner.run();
  const of = (id: string) => decisions.find(({ instanceId }) => instanceId === id.repeat(64))?.placement;
  assert.deepEqual([of('a')?.nodeId, of('a')?.reason?.code], [null, 'UNKNOWN_IMAGE']);
  assert.match(of('a')!.reason!.message, /debian:12, debian:13/);
  assert.equal(of('b')?.nodeId, node.nodeId);
  // Said once.
  planner.setInstance(parseInstance(view('a', { image: 'fedora', reason: of('a')!.reason })));
  assert.deepEqual(
    planner.run().filter(({ placement }) => placement.nodeId === null),
    [],
  );
  // An image by its hash may be any disk of the network.
  planner.setInstance(parseInstance(view('c', { image: 'c'.repeat(64) })));
  assert.equal(planner.get('c'.repeat(64))?.reason?.code ?? 'waits', 'waits');
});

test('S5: what failed for good holds no room; what may start again does', () => {
  const placed = { node_id: node.nodeId, node_address: node.address, ipv6: 'fd00::1' };
  const planner = new Planner(OPTIONS);
  planner.setNode(node, standingOf(node));
  const failed = (code: string) =>
    parseInstance(view('a', { ...placed, phase: 'failed', reason: { code, message: 'x' } }));
  planner.setInstance(failed('IMAGE_UNAVAILABLE'));
  planner.setInstance(parseInstance(view('b', { created_at: 2 })));
  planner.run();
  assert.equal(planner.get('b'.repeat(64))?.nodeId, null);
  planner.setInstance(failed('INVALID_IMAGE'));
  planner.run();
  assert.equal(planner.get('b'.repeat(64))?.nodeId, node.nodeId);
  // It keeps the node that it has: what its owner forgets is taken from there.
  assert.equal(planner.get('a'.repeat(64))?.nodeId, node.nodeId);
});

test('H3: a measured node that says of everything that it never starts gets no more than it earned', () => {
  const planner = new Planner(OPTIONS);
  const believe = (isListed: boolean) => {
    const trust = decideTrust({ level: 'measured', isListed, earned: { score: 1, hours: 2 } });
    const large = nodeAt(0, size(1_000, 1_000_000, 10_000));
    const counted = { ...large, capacity: countedRoom(large.capacity, trust) };
    planner.setNode(counted, standingOf(counted, { trust }));
  };
  believe(false);
  const ids = ['0', '1', '2', '3', '4', '5'];
  const place = (id: string, code: string) => {
    const changes = { created_at: Number(id) };
    planner.setInstance(parseInstance(view(id, changes)));
    planner.run();
    const { nodeId, nodeAddress, ipv6 } = planner.get(id.repeat(64))!;
    if (nodeId === null) return;
    const failure = { phase: 'failed', reason: { code, message: 'x' } } as const;
    const at = { node_id: nodeId, node_address: nodeAddress, ipv6 };
    planner.setInstance(parseInstance(view(id, { ...changes, ...at, ...failure })));
    planner.run();
  };
  for (const [index, id] of ids.entries())
    place(id, ['INVALID_IMAGE', 'DISK_TOO_SMALL', 'UNKNOWN_IMAGE'][index % 3]!);
  const count = () => ids.filter((id) => planner.get(id.repeat(64))!.nodeId !== null).length;
  assert.equal(count(), 2);
  assert.equal(planner.loads.get(node.nodeId)!.used.cpu, 2);
  // An operator who lists it believes it, and takes that back.
  believe(true);
  planner.run();
  assert.deepEqual([count(), planner.loads.get(node.nodeId)!.used.cpu], [6, 4]);
  believe(false);
  assert.equal(planner.loads.get(node.nodeId)!.used.cpu, 6);
  // What anybody can see holds nothing, whoever says so.
  const told = view('0', { image: 'fedora', node_id: node.nodeId, node_address: node.address });
  planner.setInstance(
    parseInstance({ ...told, phase: 'failed', reason: { code: 'UNKNOWN_IMAGE', message: 'x' } }),
  );
  assert.equal(planner.loads.get(node.nodeId)!.used.cpu, 5);
});
