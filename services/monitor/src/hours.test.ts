import assert from 'node:assert/strict';
import { appendFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { signReports } from './report.ts';
import { all, createRig, HOUR_MS, nodes, readSent, START, signer } from './testing/rig.ts';

describe('hours', () => {
  test('each hour is measured once and published once, dated within it', async () => {
    await using rig = await createRig();
    const hours = rig.create(new AbortController());
    for (let hour = 0; hour < 3; hour++) await rig.clock.drive(hours.runHour());
    assert.deepEqual(
      rig.sent.map(({ nodeIds }) => nodeIds),
      [all, all, all],
    );
    assert.deepEqual(
      rig.sent.map(({ time }) => Math.floor((time * 1000 - START) / HOUR_MS)),
      [0, 1, 2],
    );
    assert.equal(rig.clock.now(), START + 3 * HOUR_MS);
    // Begun again within an hour that is done: nothing more.
    const again = await createRig();
    await using _ = again;
    const first = again.create(new AbortController());
    const stop = new AbortController();
    const running = first.runHour();
    while (again.sent.length === 0) {
      await again.clock.settle();
      if (again.sent.length === 0) again.clock.jump();
    }
    const second = again.create(stop);
    await again.clock.drive(Promise.all([running, second.runHour()]));
    assert.equal(again.sent.length, 1);
  });

  test('a monitor that is ended while it sends does not say that it will try again', async () => {
    await using rig = await createRig();
    const stop = new AbortController();
    const told: string[] = [];
    const hours = rig.create(stop, {
      log: createLogger('monitor', 'warn', { write: (line) => void told.push(line) }),
      send: async () => {
        if (told.length > 0) stop.abort(new AppError('SHUTTING_DOWN', 'received SIGTERM'));
        throw stop.signal.aborted ? stop.signal.reason : new AppError('UPSTREAM_UNAVAILABLE', 'it is away');
      },
    });
    await rig.clock.drive(hours.runHour());
    assert.equal(told.length, 1);
    await hours.deliver();
    assert.deepEqual([stop.signal.aborted, told.length], [true, 1]);
  });

  test('a core node that is away for a night is told of a few times, and so is its return', async () => {
    await using rig = await createRig();
    let isAway = true;
    const told: string[] = [];
    const hours = rig.create(new AbortController(), {
      log: createLogger('monitor', 'info', { write: (line) => void told.push(JSON.parse(line).msg) }),
      send: async () => {
        if (isAway) throw new AppError('UPSTREAM_UNAVAILABLE', 'it is away');
      },
    });
    await rig.clock.drive(hours.runHour());
    for (let tries = 1; tries < 100; tries++) await hours.deliver();
    isAway = false;
    await hours.deliver();
    const about = told.filter((one) => one.includes('did not accept the hour'));
    assert.deepEqual([about.length, about.at(-1)!.startsWith('recovered')], [7, true]);
  });

  test('killed in the middle of an hour, it goes on: only the node in hand is asked again', async () => {
    await using rig = await createRig();
    const stop = new AbortController();
    let count = 0;
    const dying = rig.create(stop, {
      measure: async (node) => {
        rig.measured.push(node.nodeId);
        // The third is cut off.
        if (++count === 3) stop.abort();
        return { node_id: node.nodeId, measured_at: rig.clock.now() / 1000 };
      },
    });
    await rig.clock.drive(dying.runHour());
    assert.equal(rig.sent.length, 0);
    const [file] = await readdir(rig.dir);
    // A line that was being written.
    await appendFile(join(rig.dir, file!), '{"kind":"compute","record":{"node_id":"');
    const store = await rig.openStore();
    await rig.clock.drive(rig.create(new AbortController(), { store }).runHour());
    assert.deepEqual(
      rig.sent.map(({ nodeIds }) => nodeIds),
      [all],
    );
    assert.equal(rig.measured.length, 6);
    assert.equal(new Set(rig.measured).size, 5);
  });

  test('an hour that was left behind is published late, dated in its hour', async () => {
    await using rig = await createRig();
    await rig.store.append(START - HOUR_MS, {
      kind: 'compute',
      record: { node_id: all[0]!, measured_at: 1 },
    });
    await rig.clock.drive(rig.create(new AbortController()).runHour());
    assert.equal(rig.sent.length, 2);
    assert.deepEqual(rig.sent[0]!.nodeIds, [all[0]]);
    assert.equal(rig.sent[0]!.time, (START - 1) / 1000);
  });

  test('while the core node is away the hour waits, and stays the same message', async () => {
    await using rig = await createRig();
    const tried: string[] = [];
    const hours = rig.create(new AbortController(), {
      send: async (report) => {
        tried.push(report.itemHash);
        if (tried.length < 3) throw new AppError('UPSTREAM_UNAVAILABLE', 'away');
        rig.sent.push(readSent(report));
      },
    });
    await rig.clock.drive(hours.runHour());
    await Promise.all([hours.deliver(), hours.deliver(), hours.deliver()]);
    assert.equal(new Set(tried).size, 1);
    assert.deepEqual([tried.length, rig.sent.length], [3, 1]);
  });

  test('scores are published of hours that the core node has, and not while one is on its way', async () => {
    await using rig = await createRig();
    let isAway = true;
    const scored: number[] = [];
    const hours = rig.create(new AbortController(), {
      send: async (report) => {
        if (isAway) throw new AppError('UPSTREAM_UNAVAILABLE', 'away');
        rig.sent.push(readSent(report));
      },
      publishScores: async (startMs) => void scored.push((startMs - START) / HOUR_MS),
    });
    for (let hour = 0; hour < 2; hour++) await rig.clock.drive(hours.runHour());
    isAway = false;
    await rig.clock.drive(hours.runHour());
    assert.deepEqual([scored, rig.sent.length], [[0, 2], 3]);
  });

  test('what the core node refuses is not sent for ever', async () => {
    await using rig = await createRig();
    let tries = 0;
    const hours = rig.create(new AbortController(), {
      send: async () => {
        tries++;
        throw new AppError('INVALID_CONTENT', 'no');
      },
    });
    await rig.clock.drive(hours.runHour());
    await hours.deliver();
    assert.equal(tries, 1);
  });

  test('a signed hour that cannot be read keeps no other from being sent', async () => {
    await using rig = await createRig();
    await writeFile(join(rig.dir, `${START - HOUR_MS}.signed`), '');
    await rig.clock.drive(rig.create(new AbortController()).runHour());
    assert.equal(rig.sent.length, 1);
    const names = await readdir(rig.dir);
    assert.ok(names.includes(`${START - HOUR_MS}.signed.unreadable`));
  });

  test('an hour that only a wrong clock keeps away waits until it is set right', async () => {
    await using rig = await createRig();
    let isFast = true;
    const hours = rig.create(new AbortController(), {
      send: async (report) => {
        if (isFast) throw new AppError('TIMESTAMP_IN_FUTURE', 'more than ten minutes ahead');
        rig.sent.push(readSent(report));
      },
    });
    await rig.clock.drive(hours.runHour());
    isFast = false;
    await hours.deliver();
    assert.deepEqual(
      rig.sent.map(({ nodeIds }) => nodeIds),
      [all],
    );
  });

  test('an hour of nodes that say as much as they may is several messages: one that is refused takes no other along', async () => {
    await using rig = await createRig();
    const many = Array.from({ length: 1_500 }, (_, index) => index.toString(16).padStart(64, '0'));
    const url = `http://node.test/${'x'.repeat(2_000)}`;
    await Promise.all(
      many.map((node_id) =>
        rig.store.append(START - HOUR_MS, { kind: 'compute', record: { node_id, url, measured_at: 1 } }),
      ),
    );
    let tries = 0;
    const hours = rig.create(new AbortController(), {
      send: async (report) => {
        if (++tries === 2) throw new AppError('INVALID_CONTENT', 'no');
        rig.sent.push(readSent(report));
      },
    });
    await rig.clock.drive(hours.runHour());
    const [present, ...past] = rig.sent.toReversed();
    assert.deepEqual([tries, past.length, present?.nodeIds], [5, 3, all]);
    const refused = many.length - past.flatMap(({ nodeIds }) => nodeIds).length;
    assert.ok(refused > 0 && refused < many.length / 2, `${refused} of ${many.length} were refused`);
    assert.ok(past.every(({ time }) => time === (START - 1) / 1000));
    assert.equal((await rig.store.listHours()).get(START - HOUR_MS), 'done');
  });

  test('the last list of nodes counts while none can be read; without any the hour does not begin', async () => {
    await using rig = await createRig();
    let calls = 0;
    const hours = rig.create(new AbortController(), {
      listNodes: async () => {
        if (++calls === 2) return nodes;
        throw new AppError('UPSTREAM_UNAVAILABLE', 'away');
      },
    });
    await assert.rejects(rig.clock.drive(hours.runHour()), { code: 'UPSTREAM_UNAVAILABLE' });
    for (let hour = 0; hour < 2; hour++) await rig.clock.drive(hours.runHour());
    assert.deepEqual(
      rig.sent.map(({ nodeIds }) => nodeIds),
      [all, all],
    );
  });

  test('done hours are forgotten in time', async () => {
    await using rig = await createRig();
    for (let hour = 0; hour < 60; hour++) await rig.store.finish(hour * HOUR_MS, 'x');
    assert.equal((await rig.store.listHours()).size, 48);
  });
});

test('a report too long for its message is a stored file', () => {
  const entries = Array.from({ length: 1_000 }, (_, index) => ({
    kind: 'compute' as const,
    record: { node_id: index.toString(16).padStart(64, '0'), url: 'x'.repeat(200), measured_at: 1 },
  }));
  const publisher = { signer, serverAddress: '192.0.2.1', system: { asn: 1, name: null }, tags: ['t'] };
  const stored = signReports(entries, publisher, 1_780_000_000);
  assert.equal(stored.length, 1);
  assert.ok(stored[0]!.content !== undefined);
  assert.equal(JSON.parse(stored[0]!.body).message.item_type, 'storage');
  assert.equal(readSent(stored[0]!).nodeIds.length, 1_000);
  const [inline] = signReports(entries.slice(0, 10), publisher, 1_780_000_000);
  assert.equal(inline!.content, undefined);
});

test('whatever the journal of an hour holds, reading it gives records', async () => {
  await using rig = await createRig();
  const whole = '{"kind":"core","record":{"node_id":"x"}}';
  await writeFile(
    join(rig.dir, `${START}.jsonl`),
    `\n${whole}\n\n{"kind":"core"}\nnull\n7\n{"kind":"x","record":{"node_id":"x"}}\n${whole.slice(0, 9)}`,
  );
  assert.deepEqual(await rig.store.read(START), [JSON.parse(whole)]);
});
