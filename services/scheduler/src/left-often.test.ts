import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Health } from './health.ts';
import { DEPARTURES, NETWORK_CHANGES, openHeldBack } from './held-back.ts';
import { Departures } from './planning/departures.ts';
import { instanceAt, nodeAt, size } from './planning/testing/setup.ts';
import { createTrial, GRACE_MS, placedOn, small } from './testing/trial.ts';
import type { Instance, Node } from './view.ts';

const log = createLogger('test', 'silent');
const HOUR_MS = 3_600_000;

/** A node that would always get what waits, and a smaller one beside it; nobody vouches for either. */
const [flapping, steady] = [nodeAt(0, size(8, 16_384, 200)), nodeAt(1, size(4, 4_096, 100))];
const both = [flapping, steady];
const unusableOf = (trial: Awaited<ReturnType<typeof createTrial>>, { nodeId }: Node) =>
  trial.controller.snapshot().planner.loads.get(nodeId)!.standing.unusable?.code;

/** The network tells the scheduler what it said. */
function tellSaid(trial: Awaited<ReturnType<typeof createTrial>>, instances: readonly Instance[]) {
  for (const { instanceId, placement } of trial.said.splice(0)) {
    const instance = instances.find((one) => one.instanceId === instanceId)!;
    trial.controller.onInstance({ ...instance, ...placement });
  }
}

test('a node that falls silent again and again, and comes back, loses what it holds ever more seldom', async () => {
  using trial = await createTrial(both, []);
  trial.controller.setScores(new Map([[flapping.nodeId, { score: 1, hours: 10 }]]));
  let moves = 0;
  const roundMs = 2 * GRACE_MS;
  for (let round = 0; round < (10 * HOUR_MS) / roundMs; round++) {
    // Each time somebody wants a machine: the node is preferred, as soon as it may have one.
    const instance = instanceAt(round, small);
    trial.controller.onInstance(instance);
    await trial.settle();
    tellSaid(trial, [instance]);
    await trial.pass(GRACE_MS, flapping);
    if (trial.said.some(({ placement }) => placement.reason?.code === 'NODE_DEAD')) moves++;
    tellSaid(trial, [instance]);
    await trial.pass(GRACE_MS);
    trial.controller.onInstanceRemoved(instance.instanceId);
    trial.said.splice(0);
  }
  assert.ok(moves >= 10 && moves <= 20, `${moves} moves in ten hours`);
});

test('one silence is one departure, however many instances are told of, and the first costs nothing', async () => {
  const instances = [0, 1, 2].map((index) => placedOn(flapping, index));
  using trial = await createTrial(both, instances);
  await trial.pass(GRACE_MS, flapping);
  const moved = trial.said.splice(0).filter(({ placement }) => placement.reason?.code === 'NODE_DEAD');
  const [first, ...others] = moved;
  assert.equal(others.length, 2);
  const tell = ({ instanceId, placement }: typeof first & object) =>
    trial.controller.onInstance({ ...instances.find((one) => one.instanceId === instanceId)!, ...placement });
  tell(first!);
  await trial.pass(1_000);
  // It is back before all of them are told.
  for (const other of others) tell(other);
  await trial.pass(1_000);
  assert.equal(unusableOf(trial, flapping), undefined);
  // The next one soon after it does.
  for (const instance of instances) trial.controller.onInstance(instance);
  await trial.pass(GRACE_MS, flapping);
  tellSaid(trial, instances);
  await trial.pass(1_000, flapping);
  assert.equal(unusableOf(trial, flapping), 'NODE_UNREACHABLE');
  await trial.pass(GRACE_MS - 1_000);
  assert.equal(unusableOf(trial, flapping), 'NODE_LEFT_OFTEN');
  await trial.pass(GRACE_MS);
  assert.equal(unusableOf(trial, flapping), undefined);
});

test('a scheduler that starts anew holds back whom the one before it held back, for as long as was left', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-held-back-'));
  const path = join(dir, 'nodes-left.json');
  const load = { node: flapping, instances: new Map([['a', {}]]) } as never;
  const opened = async (unixMs: number, uptimeMs: number) => {
    const kept = await openHeldBack(path, DEPARTURES, { now: () => unixMs, uptime: () => uptimeMs, log });
    const { before, changed: onChange } = kept;
    const departures = new Departures({ isListed: () => false, graceMs: GRACE_MS, before, onChange, log });
    kept.follow(() => departures.list());
    return { kept, departures };
  };
  const { nodeId } = flapping;
  {
    const { kept, departures } = await opened(10 * HOUR_MS, 5_000);
    await using _ = kept;
    for (const atMs of [1_000, 2_000, 3_000]) {
      departures.left(load, atMs);
      departures.isHeldBack(nodeId, atMs);
    }
    departures.fellSilent(nodeId, 5_000);
    assert.ok(departures.isHeldBack(nodeId, 5_000));
  }
  // The machine was started anew: its clock of what passed begins at 0.
  for (const [laterMs, isHeldBack] of [
    [1_000, true],
    [GRACE_MS - 1, true],
    [GRACE_MS, false],
    // A clock that was set back makes it no longer than it was.
    [-HOUR_MS, true],
  ] as const) {
    const { kept, departures } = await opened(10 * HOUR_MS + laterMs, 50);
    await using _ = kept;
    assert.equal(departures.isHeldBack(nodeId, 50), isHeldBack, `${laterMs}`);
  }
  await writeFile(path, '{"damaged');
  const { kept, departures } = await opened(10 * HOUR_MS, 50);
  assert.ok(!departures.isHeldBack(nodeId, 50));
  await kept[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

test('a node that changed its network often is held to the last one also by a scheduler that starts anew', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-held-back-'));
  const path = join(dir, 'networks-changed.json');
  const node = nodeAt(0, small);
  const at = (step: number) => ({ ...node, ipv6Prefix: `fd00:abc${step}::/64`, announcedAtMs: step });
  const open = async (clock: { ms: number }) => {
    const [now, uptime] = [() => HOUR_MS + clock.ms, () => clock.ms];
    const kept = await openHeldBack(path, NETWORK_CHANGES, { now, uptime, log });
    const health = new Health({
      probe: async () => ({ key: null, prefix: null }),
      ...{ isAsked: () => true, isListed: () => false, asksPrefix: () => true, onChange: () => {} },
      ...{ networksBefore: kept.before, onNetworkChange: kept.changed, now, uptime },
      ...{ signal: new AbortController().signal, log },
    });
    kept.follow(() => health.listNetworkChanges());
    return { kept, health };
  };
  const clock = { ms: 0 };
  {
    const { kept, health } = await open(clock);
    await using _ = kept;
    for (const [step, ms] of [0, 1, 20_000, 60_000].entries()) {
      clock.ms = ms;
      await health.probe(at(step));
    }
    assert.equal(health.proofOf(at(3)).prefix, 'fd00:abc3::/64');
  }
  const { kept, health } = await open(clock);
  await using _ = kept;
  // What it had is where its instances are, until it proves that it has it, or another one.
  assert.deepEqual(health.proofOf(at(3)), {
    ...{ isKeyProved: false, prefix: 'fd00:abc3::/64' },
    prefixFault: 'the node has not been asked for it yet',
  });
  await health.probe(at(4));
  const { prefix, prefixFault } = health.proofOf(at(4));
  assert.match(`${prefix} ${prefixFault}`, /^fd00:abc3::\/64 the node changed its network/);
  await health.probe(at(3));
  assert.equal(health.proofOf(at(3)).prefixFault, null);
  // Another one proves in the next process that it has this network: it has been the other's since.
  const next = await open(clock);
  await using _next = next.kept;
  await next.health.probe({ ...nodeAt(1, small), ipv6Prefix: 'fd00:abc3::/64' });
  assert.equal(next.health.proofOf(at(3)).prefix, null);
  await rm(dir, { recursive: true });
});
