import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRig, HOUR_MS, nodes, readSent, START } from './testing/rig.ts';

test('a clock that was ahead and is set right meanwhile costs an hour at most', async () => {
  await using rig = await createRig();
  let nowMs = START + 240 * HOUR_MS;
  const waits: number[] = [];
  const hours = rig.create(new AbortController(), {
    clock: {
      now: () => nowMs,
      // Before each visit is the alarm of the hour's end, which the visit is done before.
      waitUntil: (timeMs, signal) =>
        [1, 3].includes(waits.push(timeMs - nowMs))
          ? new Promise((resolve) => signal.addEventListener('abort', () => resolve(false)))
          : Promise.resolve(true),
    },
    listNodes: async () => nodes.slice(0, 1),
    measure: async ({ nodeId }) => {
      nowMs = START;
      return { node_id: nodeId, measured_at: nowMs / 1000 };
    },
  });
  await hours.runHour();
  // What was measured then is of no hour; the present one is measured at once.
  assert.deepEqual([rig.sent.length, waits.length], [0, 2]);
  await hours.runHour();
  assert.deepEqual([rig.sent.length, rig.sent[0]!.time, waits.at(-1)], [1, START / 1000, HOUR_MS]);
});

test('however a clock is set, no node is measured twice in an hour by the dates of the messages', async () => {
  const minutes = fc.integer({ min: -150, max: 150 });
  const settings = fc.array(fc.record({ after: fc.nat(12), minutes }), { maxLength: 4 });
  const check = async (plan: readonly { after: number; minutes: number }[]) => {
    await using rig = await createRig();
    const due = plan.map(({ after, minutes: by }) => ({ after, by: by * 60_000 }));
    let scoredMs = 0;
    const hours = rig.create(new AbortController(), {
      measure: async (node) => {
        rig.measured.push(node.nodeId);
        for (const one of due.splice(0).toSorted((a, b) => a.after - b.after))
          if (one.after <= rig.measured.length) rig.clock.set(one.by);
          else due.push(one);
        return { node_id: node.nodeId, measured_at: rig.clock.now() / 1000 };
      },
      publishScores: async (startMs) => {
        scoredMs = Math.max(scoredMs, startMs);
      },
      send: async (report) => {
        const sent = readSent(report);
        rig.sent.push(sent);
      },
    });
    for (let hour = 0; hour < 6; hour++) await rig.clock.drive(hours.runHour());
    const dated = rig.sent.flatMap(({ time, nodeIds }) =>
      nodeIds.map((id) => `${Math.floor((time * 1000) / HOUR_MS)} ${id}`),
    );
    assert.equal(new Set(dated).size, dated.length);
    assert.ok(rig.sent.length > 0 && scoredMs > 0);
  };
  const backOverTheHour = [{ after: 7, minutes: -30 }];
  const backInTheHour = [{ after: 3, minutes: -5 }];
  const forthAndBack = [
    { after: 3, minutes: 70 },
    { after: 8, minutes: -70 },
  ];
  const examples = [backOverTheHour, backInTheHour, forthAndBack].map((one) => [one] as [typeof one]);
  await fc.assert(fc.asyncProperty(settings, check), { numRuns: 20, examples });
});

test('an hour that comes again is measured once, and not at all where it is one of those that scores are of', async () => {
  await using rig = await createRig();
  await rig.store.finish(START + HOUR_MS, 'x');
  const scored: number[] = [];
  const publishScores = async (startMs: number) => void scored.push(startMs);
  await rig.clock.drive(rig.create(new AbortController(), { publishScores }).runHour());
  assert.deepEqual([rig.sent, rig.measured, scored], [[], [], []]);
  assert.equal(rig.clock.now(), START + HOUR_MS);
});
