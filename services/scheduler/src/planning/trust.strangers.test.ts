import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { earnedBy, parseScores } from '../scores.ts';
import { weightOf } from './load.ts';
import { Planner } from './planner.ts';
import { refusePrefix } from './prefix.ts';
import { instanceAt, nodeAt, size, standingOf } from './testing/setup.ts';
import { countedRoom, decideTrust, type Earned, earnedRoom } from './trust.ts';

const MILLION = size(1_000_000, 1_000_000_000, 1_000_000);
const measured = (earned: Earned | null) => decideTrust({ level: 'measured', isListed: false, earned });
const anyEarned = fc.record({ score: fc.double({ min: 0, max: 1, noNaN: true }), hours: fc.nat(10_000) });

describe('H3: room counts as it is earned', () => {
  test('H3: a claim of a million cores draws nothing: not measured it counts for nothing, measured for what it earned', () => {
    for (const earned of [null, { score: 0, hours: 100 }, { score: 1, hours: 0 }]) {
      const trust = measured(earned);
      assert.equal(trust.against?.code, 'NODE_NOT_MEASURED');
      assert.deepEqual(countedRoom(MILLION, trust), size(0, 0, 0));
    }
    const trust = measured({ score: 0.5, hours: 4 });
    assert.equal(trust.against, null);
    assert.deepEqual(countedRoom(MILLION, trust), size(2, 4_096, 40));
    assert.deepEqual(countedRoom(size(1, 1_024, 10), trust), size(1, 1_024, 10));
    assert.match(trust.words, /measured for 4 hours with a score of 0.5.*2 cores, 4096 MiB and 40 GiB/);
  });

  test('H3: it never falls with the score or the hours, and never follows what is claimed', () => {
    fc.assert(
      fc.property(anyEarned, anyEarned, (a, b) => {
        const [low, high] = [
          { score: Math.min(a.score, b.score), hours: Math.min(a.hours, b.hours) },
          { score: Math.max(a.score, b.score), hours: Math.max(a.hours, b.hours) },
        ];
        const [less, more] = [earnedRoom(low), earnedRoom(high)];
        assert.ok(less.cpu <= more.cpu && less.memoryMib <= more.memoryMib && less.diskGib <= more.diskGib);
        if (low.score > 0 && low.hours > 0) {
          const room = countedRoom(MILLION, measured(low));
          assert.deepEqual(room, countedRoom(size(2_000_000, 2_000_000_000, 2_000_000), measured(low)));
        }
      }),
    );
  });

  test('H3: the next machine goes to the small node that earned its room', () => {
    const planner = new Planner({ cpuOvercommit: 4, manages: () => true });
    const [boaster, small] = [nodeAt(0, MILLION), nodeAt(1, size(4, 4_096, 40))];
    const add = (node: typeof boaster, earned: Earned | null) => {
      const trust = measured(earned);
      const counted = { ...node, capacity: countedRoom(node.capacity, trust) };
      planner.setNode(counted, standingOf(node, { trust, isListed: true, score: earned?.score ?? null }));
    };
    add(boaster, null);
    add(small, { score: 0.9, hours: 3 });
    planner.setInstance(instanceAt(0, size(1, 512, 4)));
    planner.run();
    assert.equal(planner.get(instanceAt(0, size(1, 512, 4)).instanceId)?.nodeId, small.nodeId);
  });

  test('H3: where everybody is believed, a claim of more than any node has is one of much and keeps nobody out', () => {
    const planner = new Planner({ cpuOvercommit: 4, manages: () => true });
    const nodes = [nodeAt(0, size(1e308, 1e308, 1e308)), nodeAt(1, size(4, 4_096, 40))];
    for (const node of nodes) planner.setNode(node, standingOf(node));
    for (let index = 0; index < 3; index++) planner.setInstance(instanceAt(index, size(1, 512, 4)));
    planner.run();
    assert.equal(planner.listWaiting().length, 0);
    for (const load of planner.loads.values()) assert.ok(weightOf(load) > 0, `${weightOf(load)}`);
  });

  test('H3: who is listed is believed, "listed" believes nobody else, "all" everybody', () => {
    const decide = (level: 'listed' | 'measured' | 'all', isListed: boolean) =>
      decideTrust({ level, isListed, earned: null }).against?.code ?? null;
    for (const level of ['listed', 'measured', 'all'] as const) assert.equal(decide(level, true), null);
    assert.deepEqual(
      (['listed', 'measured', 'all'] as const).map((level) => decide(level, false)),
      ['NODE_NOT_LISTED', 'NODE_NOT_MEASURED', null],
    );
  });

  test('H3: hours of measurements are read from what was published, within bounds', () => {
    const id = 'a'.repeat(64);
    const hoursOf = (record_count: unknown) => {
      const crn = [{ node_id: id, total_score: 1, measurements: { record_count } }];
      return earnedBy(parseScores({ scores: { crn } }, 0).get(id)!, 0).hours;
    };
    assert.deepEqual([5, 1e300, -1, '7', null].map(hoursOf), [5, 1, 1, 1, 1]);
    assert.equal(hoursOf(10 ** 12), 17_520);
  });
});

test('H3: hours in which a node was silent earn no room', () => {
  const id = 'a'.repeat(64);
  const earnedIn = (total_score: number, record_count: number) => {
    const crn = [{ node_id: id, total_score, measurements: { record_count } }];
    return earnedBy(parseScores({ scores: { crn } }, 0).get(id)!, 0);
  };
  // What a perfect node has after a day, and a week (docs/scoring.md).
  const [day, week] = [0.271962735, 0.751386028];
  assert.deepEqual(earnedIn(day, 24), { score: day, hours: 24 });
  assert.equal(earnedRoom(earnedIn(week, 168)).cpu, 127);
  // A year of silence before it.
  assert.deepEqual(earnedRoom(earnedIn(day, 366 * 24)), earnedRoom(earnedIn(day, 24)));
  assert.equal(earnedRoom(earnedIn(day, 366 * 24)).cpu, 7);
});

describe('H3: networks', () => {
  test('H3: special ones are no node’s, whoever vouches for it', () => {
    for (const prefix of [
      '::/64',
      '0:0:0:1::/64',
      '2002:7f00:1::/64',
      '64:ff9b:1:7f00::/64',
      '64:ff9b::/64',
      '2001::/64',
      'fe80::/64',
      'fec0::/64',
      'ff02::/64',
      '100::/64',
      '3fff:1::/64',
      '5f00::/64',
    ])
      for (const mayBePrivate of [false, true])
        assert.equal(refusePrefix(prefix, mayBePrivate)?.code, 'NODE_PREFIX_REFUSED', prefix);
  });

  test('H3: private ones are only of nodes that are vouched for', () => {
    for (const prefix of ['fd00::/64', 'fc00:1::/64', '2001:db8::/64']) {
      assert.equal(refusePrefix(prefix, false)?.code, 'NODE_PREFIX_PRIVATE');
      assert.equal(refusePrefix(prefix, true), null);
    }
    assert.equal(refusePrefix('2a00:1:2:3::/64', false), null);
  });
});
