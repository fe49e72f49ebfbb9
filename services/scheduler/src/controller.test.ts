import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AWAITING_NODE } from '@skerry/protocol';
import { instanceAt, nodeAt, size } from './planning/testing/setup.ts';
import { createTrial, GRACE_MS, placedOn, small } from './testing/trial.ts';
import { NODES_MAX, type Node } from './view.ts';

const nodes = [0, 1, 2].map((index) => nodeAt(index, size(4, 4_096, 100)));
const [first] = nodes as [Node];
test('a node that dies keeps what it has for the grace period, one that comes back keeps it for good', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial(nodes, [instance]);
  await trial.pass(GRACE_MS - 1, first);
  assert.equal(trial.nodeOf(instance.instanceId), first.nodeId);
  await trial.pass(10 * GRACE_MS);
  await trial.pass(GRACE_MS - 1, first);
  assert.equal(trial.nodeOf(instance.instanceId), first.nodeId);
  await trial.pass(1, first);
  const moved = trial.nodeOf(instance.instanceId);
  assert.notEqual(moved, first.nodeId);
  const { placement } = trial.said.at(-1)!;
  assert.deepEqual([placement.nodeId, placement.reason?.code], [moved, 'NODE_DEAD']);
  const [record] = trial.controller.snapshot().decisions.list(instance.instanceId).slice(-1);
  assert.deepEqual([record!.kind, record!.from], ['moved', first.nodeId]);
});

test('a scheduler that takes over moves nothing from a node that only it could not reach: it waits for the grace period itself', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial(nodes, [instance]);
  trial.setLeads(false);
  await trial.pass(10 * GRACE_MS, first);
  trial.setLeads(true);
  await trial.settle();
  await trial.pass(GRACE_MS - 1, first);
  assert.equal(trial.nodeOf(instance.instanceId), first.nodeId);
  assert.ok(trial.said.every(({ placement }) => placement.nodeId === first.nodeId));
  await trial.pass(1, first);
  assert.equal(trial.said.at(-1)!.placement.reason?.code, 'NODE_DEAD');
});

test('a clock that is set makes no outage longer or shorter than it was', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial(nodes, [instance]);
  await trial.pass(1_000, first);
  trial.setClock(3_600_000);
  await trial.pass(GRACE_MS - 1_001, first);
  assert.equal(trial.nodeOf(instance.instanceId), first.nodeId);
  trial.controller.onDisconnect(new Error('gone'));
  trial.setClock(-2 * 3_600_000);
  await trial.pass(10_000, first);
  assert.notEqual(trial.nodeOf(instance.instanceId), first.nodeId);
});

test('what placed an instance is taken back: it is placed where it was, by whoever speaks, until a scheduler says otherwise', async () => {
  const [, second] = nodes as [Node, Node];
  const instance = placedOn(second, 0);
  const { instanceId } = instance;
  const unsaid = { ...instance, nodeId: null, nodeAddress: null, ipv6: '', reason: AWAITING_NODE };
  using trial = await createTrial(nodes, [instance]);
  // One that only looks on knows it as well, once it speaks.
  trial.setLeads(false);
  trial.said.length = 0;
  trial.controller.onInstance(unsaid);
  trial.controller.onInstance(unsaid);
  await trial.settle();
  assert.deepEqual([trial.said.length, trial.nodeOf(instanceId)], [0, second.nodeId]);
  assert.equal(trial.controller.snapshot().view.holders.get(second.nodeId), 1);
  trial.setLeads(true);
  await trial.settle();
  const said = () => trial.said.map(({ placement }) => [placement.nodeId, placement.reason]);
  assert.deepEqual(said(), [[second.nodeId, null]]);
  // A scheduler's word is a decision.
  trial.controller.onInstance({ ...unsaid, reason: { code: 'NO_CAPACITY', message: 'full' } });
  await trial.settle();
  assert.equal(trial.controller.snapshot().view.instances.get(instanceId)?.kept, undefined);
});

test('while most nodes are out of reach none counts as dead: the scheduler may be cut off', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial(nodes, [instance]);
  await trial.pass(10 * GRACE_MS, first, nodes[1]!);
  assert.ok(trial.controller.isCutOff);
  assert.equal(trial.nodeOf(instance.instanceId), first.nodeId);
  await trial.pass(1, first);
  assert.notEqual(trial.nodeOf(instance.instanceId), first.nodeId);
});

test('strangers that fall silent together keep no dead node from being left, where listed nodes of two providers answer', async () => {
  const room = size(4, 4_096, 100);
  const listed = ['2a00:1::/64', '2a01:1::/64', '2a02:1::/64'].map((ipv6Prefix, index) =>
    nodeAt(index, room, { ipv6Prefix }),
  ) as [Node, Node, Node];
  const strangers = [3, 4, 5, 6, 7].map((index) => nodeAt(index, room, { ipv6Prefix: `2a09:${index}::/64` }));
  const own = new Set(listed.map(({ address }) => address));
  const instance = placedOn(listed[0], 0);
  using trial = await createTrial([...listed, ...strangers], [instance], [], (one) => own.has(one));
  trial.controller.setScores(new Map(strangers.map(({ nodeId }) => [nodeId, { score: 1, hours: 1 }])));
  await trial.pass(1);
  await trial.pass(GRACE_MS, ...strangers, ...listed.slice(0, 2));
  assert.ok(trial.controller.isCutOff);
  assert.equal(trial.nodeOf(instance.instanceId), listed[0].nodeId);
  await trial.pass(1, ...strangers, listed[0]);
  assert.ok(!trial.controller.isCutOff);
  const moved = trial.nodeOf(instance.instanceId);
  assert.ok(moved === listed[1].nodeId || moved === listed[2].nodeId);
});

/** Strangers whose nodes are preferred to the listed one of a trial. */
async function createFlappingTrial() {
  const room = size(4, 4_096, 100);
  const [one, other, listed] = [0, 1, 2].map((index) =>
    nodeAt(index, room, { ipv6Prefix: `2a0${index}:1::/64` }),
  ) as [Node, Node, Node];
  const instance = placedOn(one, 0);
  const all = [one, other, listed];
  const trial = await createTrial(all, [instance], [], (address) => address === listed.address);
  const scores = new Map([one, other].map(({ nodeId }) => [nodeId, { score: 1, hours: 10 }]));
  trial.controller.setScores(scores);
  await trial.pass(1);
  const draining = { code: 'NODE_DRAINING', message: 'leaving' };
  return {
    ...{ trial, one, other, listed, instance },
    countMoves: () => trial.said.filter(({ placement }) => placement.reason !== null).length,
    async announce(node: Node, isLeaving: boolean, announcedAtMs: number) {
      trial.controller.onNode({ ...node, announcedAtMs, reason: isLeaving ? draining : null });
      await trial.pass(1_000);
    },
  };
}

test('strangers that leave in turns, and come back, move what they hold no more than some times', async () => {
  const { trial, one, other, listed, instance, countMoves, announce } = await createFlappingTrial();
  using _ = trial;
  const codeOf = ({ nodeId }: Node) =>
    trial.controller.snapshot().planner.loads.get(nodeId)!.standing.unusable?.code;
  const codes = new Set<string | undefined>();
  for (let at = 2; at < 200; at += 4) {
    await announce(one, true, at);
    await announce(one, false, at + 1);
    codes.add(codeOf(one));
    await announce(other, true, at + 2);
    await announce(other, false, at + 3);
  }
  assert.ok(countMoves() > 1 && countMoves() <= 4, `${countMoves()} moves`);
  assert.equal(trial.nodeOf(instance.instanceId), listed.nodeId);
  assert.ok(codes.has('NODE_LEFT_OFTEN'));
  assert.equal(codeOf(one), undefined);
});

test('a stranger that leaves by taking its announcement back, and announces itself again, is one that leaves', async () => {
  const { trial, one, other, listed, instance, countMoves } = await createFlappingTrial();
  using _ = trial;
  for (let turn = 0; turn < 20; turn++)
    for (const node of [one, other]) {
      trial.controller.onNodeGone(node.nodeId, undefined);
      await trial.pass(1_000);
      trial.controller.onNode(node);
      await trial.pass(1_000);
    }
  assert.ok(countMoves() > 1 && countMoves() <= 4, `${countMoves()} moves`);
  assert.equal(trial.nodeOf(instance.instanceId), listed.nodeId);
});

test('however many nodes are announced, those that were measured have their places', async () => {
  const crowd = Array.from({ length: NODES_MAX }, (_, index) => nodeAt(index + 1, small));
  const [late, later] = [nodeAt(NODES_MAX + 1, small), nodeAt(NODES_MAX + 2, small)];
  using trial = await createTrial(crowd, [], [], () => false);
  const { controller } = trial;
  const has = ({ nodeId }: Node) => controller.snapshot().view.nodes.has(nodeId);
  controller.onNode(late);
  assert.ok(!has(late));
  assert.deepEqual(controller.listMissing(), []);
  controller.setScores(
    new Map([
      [late.nodeId, { score: 0.5, hours: 1 }],
      [later.nodeId, { score: 0.5, hours: 1, outdatedMs: 1 }],
      [crowd[0]!.nodeId, { score: 0.5, hours: 1 }],
    ]),
  );
  assert.deepEqual(controller.listMissing(), [late.nodeId, later.nodeId]);
  assert.equal(controller.scoresOutdatedMs, null);
  for (const node of [late, later]) controller.onNode(node);
  assert.deepEqual([has(late), has(later), controller.listMissing()], [true, true, []]);
  controller.setScores(new Map([[late.nodeId, { score: 0.5, hours: 1, outdatedMs: 1 }]]));
  assert.equal(controller.scoresOutdatedMs, 1);
});

test('nodes that were given up long ago hold nobody back', async () => {
  const instance = placedOn(nodes[2]!, 0);
  using trial = await createTrial(nodes, [instance]);
  await trial.pass(86_400_000, first);
  assert.ok(!trial.controller.isCutOff);
  await trial.pass(GRACE_MS, first, nodes[2]!);
  assert.equal(trial.nodeOf(instance.instanceId), nodes[1]!.nodeId);
});

test('on standby it says nothing and knows everything; deposed, it takes back what was not said', async () => {
  const waiting = instanceAt(1, small);
  using trial = await createTrial(nodes, [placedOn(first, 0)]);
  trial.setLeads(false);
  trial.controller.onInstance(waiting);
  await trial.settle();
  assert.equal(trial.nodeOf(waiting.instanceId), null);
  trial.setLeads(true);
  await trial.settle();
  const chosen = trial.nodeOf(waiting.instanceId);
  assert.notEqual(chosen, null);
  assert.equal(trial.outbox.get(waiting.instanceId)?.nodeId, chosen);
  trial.setLeads(false);
  assert.deepEqual([trial.outbox.size, trial.nodeOf(waiting.instanceId)], [0, null]);
});

test('a node that takes its announcement back has left; with an older one it is there again', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial(nodes, [instance]);
  const older = { ...first, ipv6Prefix: 'fd00:abc::/64', announcedAtMs: 0 };
  trial.controller.onNodeGone(first.nodeId, older);
  await trial.health.probe(older);
  await trial.settle();
  assert.match(trial.controller.snapshot().planner.get(instance.instanceId)!.ipv6, /^fd00:abc::3:/);
  trial.controller.onNodeGone(first.nodeId, undefined);
  await trial.settle();
  assert.notEqual(trial.nodeOf(instance.instanceId), first.nodeId);
  assert.equal(trial.said.at(-1)!.placement.reason?.code, 'NODE_GONE');
});

test('a node that leaves and comes back changes its network no more often than one that stays', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial([first], [instance]);
  const announce = async (step: number) => {
    const node = { ...first, ipv6Prefix: `fd00:abc${step}::/64`, announcedAtMs: 1 + step };
    trial.controller.onNode(node);
    await trial.health.probe(node);
    await trial.settle();
    return trial.health.proofOf(node).prefix;
  };
  assert.equal(await announce(1), 'fd00:abc1::/64');
  trial.controller.onNodeGone(first.nodeId, undefined);
  await trial.settle();
  assert.equal(await announce(2), 'fd00:abc1::/64');
});

test('scores change what is preferred, and move nothing', async () => {
  const instance = placedOn(first, 0);
  using trial = await createTrial(nodes, [instance]);
  trial.controller.setScores(new Map([[nodes[2]!.nodeId, { score: 1, hours: 3 }]]));
  trial.controller.onInstance(instanceAt(1, small));
  await trial.settle();
  assert.equal(trial.nodeOf(instance.instanceId), first.nodeId);
  assert.equal(trial.nodeOf(instanceAt(1, small).instanceId), nodes[2]!.nodeId);
});

test('that no node may run programs is told only once one has proved itself, and not while most are out of reach', async () => {
  using trial = await createTrial(nodes, [], nodes);
  await trial.pass(1_000, ...nodes);
  assert.ok(!trial.toldCounts.includes(0));
  await trial.pass(1_000);
  assert.equal(trial.toldCounts.at(-1), 3);
  await trial.pass(1_000, ...nodes.slice(1));
  assert.ok(!trial.toldCounts.includes(0));
  const before = trial.toldCounts.length;
  await trial.pass(1_000, ...nodes);
  assert.ok(trial.controller.isCutOff);
  assert.ok(!trial.toldCounts.slice(before).includes(0));
  for (const { nodeId } of nodes) trial.controller.onNodeGone(nodeId, undefined);
  await trial.pass(1_000);
  assert.equal(trial.toldCounts.at(-1), 0);
});

test('nodes run programs on scores that are too old for instances, also for a scheduler that began after that', async () => {
  const [useless, ...measured] = nodes as [Node, ...Node[]];
  const scores = (of: { outdatedMs?: number }) =>
    new Map([
      [useless.nodeId, { score: 0, hours: 1, ...of }],
      ...measured.map(({ nodeId }) => [nodeId, { score: 1, hours: 1, ...of }] as const),
    ]);
  for (const before of [scores({}), undefined]) {
    const waiting = instanceAt(1, small);
    using trial = await createTrial(nodes, [], [], () => false);
    if (before) trial.controller.setScores(before);
    await trial.pass(1_000);
    trial.controller.setScores(scores({ outdatedMs: 1 }));
    trial.controller.onInstance(waiting);
    await trial.pass(1_000);
    assert.deepEqual([trial.toldCounts.at(-1), trial.nodeOf(waiting.instanceId)], [2, null]);
    // Whoever no longer answers runs none.
    await trial.pass(1_000, measured[0]!);
    assert.equal(trial.toldCounts.at(-1), 1);
    trial.controller.setScores(new Map());
    await trial.pass(1_000);
    assert.equal(trial.toldCounts.at(-1), 0);
  }
});
