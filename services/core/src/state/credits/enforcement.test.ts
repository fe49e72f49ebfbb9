import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import {
  balancesAt,
  CREDIT_CHANNEL,
  CREDIT_POST,
  type CreditState,
  DEFAULT_PRICES,
  HOLD_SECONDS,
  instanceNeeds,
  parseDistribution,
  purchasesOf,
  rateOf,
  type StampedEntry,
  verifySubmission,
} from '@skerry/protocol';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { IPFS_API } from '@skerry/protocol/api/core/ipfs';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { NETWORK_STORAGE_API } from '@skerry/protocol/api/core/network-storage';
import { PROGRAMS_API } from '@skerry/protocol/api/core/programs';
import { STORAGE_API } from '@skerry/protocol/api/core/storage';
import { errorsOf } from '@skerry/protocol/api/operation';
import fc from 'fast-check';
import { sql } from 'kysely';
import { acceptMessage } from '../../intake/accept.ts';
import { resourceEffect } from '../../intake/effects/credits.ts';
import { creditKey } from '../../store/dependency-keys.ts';
import type { Schema } from '../../store/schema.ts';
import { clearMessages } from '../../testing/clear.ts';
import { createTestCore, instanceContent, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';
import { loadAffordance } from './afford.ts';
import type { Resource } from './write.ts';

const { alice, bob, credit } = signers;
const T0 = 1_700_000_000;
/** Whole credits that an instance of one unit has to have: a day of it, rounded up. */
const DAY = 342_000;
/** What is charged of it for an hour, rounded up. */
const HOUR = 14_250;

let core: TestCore;
let nowMs = Date.now();
before(async () => {
  core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
});
after(() => core[Symbol.asyncDispose]());

interface Sent {
  readonly body: string;
  readonly itemHash: string;
  readonly time: number;
}

function signed(signer: Signer, type: string, content: unknown, at: number): Sent {
  const draft: MessageDraft = { type, content, channel: CREDIT_CHANNEL, timestamp: T0 + at, nonce: `${at}` };
  return { ...signMessage(draft, signer), time: T0 + at };
}

const acceptedOf = ({ body }: Sent) => ({
  accepted: acceptMessage(verifySubmission(body, Math.floor(Date.now() / 1000))),
});

async function put(all: readonly Sent[], into: TestCore = core): Promise<void> {
  const { intake, pipeline } = into.rooms;
  await Promise.all(
    // A peer's word that they came in time.
    all.map((sent) => intake.peer.keep([acceptedOf(sent)])),
  );
  await pipeline.idle();
}

const statusOf = async ({ itemHash }: Sent, at: TestCore = core) =>
  (await at.get(`/messages/${itemHash}/status`)).body.status as string;
const grantOf = (amount: number, ref: string) => ({
  distribution: { credits: [{ address: alice.address, amount, ref }] },
});
const grant = (at: number, amount: number) =>
  signed(credit, 'POST', { type: CREDIT_POST.distribution, content: grantOf(amount, `r${at}`) }, at);
const instance = (at: number, cpu: number) => signed(alice, 'INSTANCE', { ...instanceContent, cpu }, at);
/** Of the first hour of an instance of one unit. */
function chargeOf({ itemHash }: Sent, at: number): Sent {
  const line = { address: alice.address, ref: itemHash, nanocredits: `${HOUR}000000000` };
  const expense = { start_date: T0, end_date: T0 + 3_600, credits: [line] };
  return signed(credit, 'POST', { type: CREDIT_POST.expense, content: { expense } }, at);
}
const notice = (at: number, state: CreditState) =>
  signed(
    credit,
    'POST',
    {
      type: CREDIT_POST.notice,
      content: { notice: { address: alice.address, state, credits: 0, runs_out_at: null } },
    },
    at,
  );

describe('without credit', () => {
  test('what cannot be paid for a day is refused with 402, and taken once there is credit', async () => {
    await clearMessages(core);
    const send = (at: number, by = alice) => {
      const timestamp = T0 + at;
      nowMs = timestamp * 1000;
      return core.send(by, { type: 'INSTANCE', content: instanceContent, timestamp }, '/instances');
    };
    const refused = await send(10);
    assert.deepEqual([refused.status, refused.body.code], [402, 'CREDIT_INSUFFICIENT']);
    // As every contract says by which a message is sent that costs credit.
    for (const operation of [
      ...[INSTANCES_API.createInstance, INSTANCES_API.controlInstance, PROGRAMS_API.createProgram],
      ...[MESSAGES_API.submitMessage, IPFS_API.pinToIpfs, IPFS_API.addIpfsFile],
      ...[NETWORK_STORAGE_API.addFile, STORAGE_API.storeFile],
    ])
      assert.ok(errorsOf(operation).includes('CREDIT_INSUFFICIENT'), operation.path);
    assert.match(
      refused.body.error,
      /has 0 credits, but a day of this and of everything before it costs 342000/,
    );
    await put([grant(20, DAY)]);
    assert.equal((await send(30)).status, 200);
    assert.equal((await send(40)).status, 402);
    // Bob has none, whatever Alice has.
    assert.equal((await send(50, bob)).status, 402);
  });

  test('however many messages of an owner come at once, all that the owner ever had is read once', async () => {
    await clearMessages(core);
    const owner = bob.address;
    const wishes = Array.from({ length: 64 }, (_, index) => ({
      ...{ itemHash: `w${index}`, owner, time: T0 + 100 + (index >> 1) },
      resource: { from: 'needs', needs: { kind: 'instance', units: 1, mib: 0 } } as const,
    }));
    await core.rooms.db
      .transaction()
      .execute(async (trx) => {
        await sql`
          insert into credit_entries (item_hash, place, key, kind, owner, nano, ref, "time", counts)
          select 'e' || n, 0, 'e' || n, 'purchase', ${owner}, 1, 'e' || n, ${T0}::float8 + n % 200, true
          from generate_series(1, 2000) n`.execute(trx);
        await sql`
          insert into credit_resources (item_hash, owner, kind, created, units, mib)
          select 'r' || n, ${owner}, 'instance', ${T0}::float8 + n % 200, 1, 0 from generate_series(1, 2000) n`.execute(
          trx,
        );
        await sql`analyze credit_entries`.execute(trx);
        await sql`analyze credit_resources`.execute(trx);
        const count = async () => {
          const { rows } = await sql<{ rows: number }>`
            select sum(idx_tup_fetch + seq_tup_read)::int as rows from pg_stat_xact_user_tables
            where relname in ('credit_entries', 'credit_resources')`.execute(trx);
          return rows[0]!.rows;
        };
        const before = await count();
        const affordance = await loadAffordance(trx, wishes, new Map());
        const read = (await count()) - before;
        assert.ok(read < 10_000, `${read} of 4,000 rows were read`);
        for (const wish of [wishes[0]!, wishes[1]!, wishes.at(-1)!]) {
          const alone = await loadAffordance(trx, [wish], new Map());
          assert.ok(alone.findShortage(wish.itemHash));
          assert.equal(affordance.findShortage(wish.itemHash), alone.findShortage(wish.itemHash));
        }
        throw new RangeError('nothing of it is kept');
      })
      .catch((error: unknown) => assert.ok(error instanceof RangeError, error as Error));
  });

  test('credit that was bought before, and is told later, changes what was refused', async () => {
    await clearMessages(core);
    const wanted = instance(10, 1);
    await put([wanted]);
    assert.equal(await statusOf(wanted), 'rejected');
    await put([grant(5, DAY)]);
    assert.equal(await statusOf(wanted), 'processed');
    await put([signed(alice, 'FORGET', { hashes: [wanted.itemHash] }, 20)]);
    assert.equal(await statusOf(wanted), 'forgotten');
  });

  test('what an owner whose clock is ahead made is not thrown out by its own first charge, which counts for what comes after it', async () => {
    const machine = instance(20, 1);
    const next = instance(30, 1);
    const paid = grant(1, DAY);
    const charge = chargeOf(machine, 10);
    const orders = [[[paid], [machine], [charge]], [[charge], [machine], [paid]], [[charge, machine, paid]]];
    for (const order of orders) {
      await clearMessages(core);
      for (const sent of order) await put(sent);
      assert.equal(await statusOf(machine), 'processed');
      await put([grant(25, DAY), next]);
      assert.equal(await statusOf(next), 'rejected');
      await put([grant(26, HOUR)]);
      assert.deepEqual([await statusOf(next), await statusOf(machine)], ['processed', 'processed']);
    }
  });

  test('of one owner a bounded number is put in line at once, however many were refused', async () => {
    await clearMessages(core);
    const wanted = instance(10, 1);
    await put([wanted]);
    assert.equal(await statusOf(wanted), 'rejected');
    const { accepted } = acceptedOf(wanted);
    const [change] = accepted.changes;
    await core.rooms.db
      .transaction()
      .execute(async (trx) => {
        const forget = async (refused: number) => {
          await sql`
            insert into messages select copy.* from messages m, generate_series(1, ${refused}::int) n,
              jsonb_populate_record(m, jsonb_build_object('item_hash', 'copy' || n, 'time', m."time" + n)) copy
            where m.item_hash = ${wanted.itemHash} on conflict do nothing`.execute(trx);
          await sql`
            insert into dependencies select key, 'copy' || n from dependencies, generate_series(1, ${refused}::int) n
            where item_hash = ${wanted.itemHash} on conflict do nothing`.execute(trx);
          const lined = { changedKeys: new Set<string>(), reconsider: new Set<string>() };
          const writing = { trx, schedulers: new Set<string>(), events: [], changesOf: () => [], ...lined };
          const step = { message: accepted.message, owner: accepted.owner, data: change!.data as Resource };
          await resourceEffect.write([{ ...step, undo: true, isNew: false }], writing);
          return lined;
        };
        const few = await forget(999);
        assert.deepEqual([few.reconsider.size, few.changedKeys.size], [999, 0]);
        const many = await forget(1_500);
        assert.deepEqual([many.reconsider.size, [...many.changedKeys]], [0, [creditKey(alice.address)]]);
        throw new RangeError('nothing of it is kept');
      })
      .catch((error: unknown) => assert.ok(error instanceof RangeError, error as Error));
  });

  test('the setting decides again when it changes', async () => {
    const log = createLogger('core', 'fatal');
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    const wanted = instance(10, 1);
    const statusWith = async (creditEnforcement: boolean) => {
      await using again = await createTestCore({ database, creditEnforcement });
      await put([wanted], again);
      return statusOf(wanted, again);
    };
    const statuses = [await statusWith(true), await statusWith(false), await statusWith(true)];
    assert.deepEqual(statuses, ['rejected', 'processed', 'rejected']);
  });
});

describe('in any order', () => {
  const rate = (cpu: number) => rateOf(instanceNeeds({ ...instanceContent, cpu }), DEFAULT_PRICES.instance);

  /** The pure rule: each in order of time, with what was taken before it. */
  function expect(
    wishes: readonly { sent: Sent; cpu: number }[],
    entries: readonly StampedEntry[],
  ): Map<string, string> {
    let taken = 0n;
    const sorted = wishes.toSorted(
      (a, b) => a.sent.time - b.sent.time || (a.sent.itemHash < b.sent.itemHash ? -1 : 1),
    );
    return new Map(
      sorted.map(({ sent, cpu }) => {
        const balance = balancesAt(entries, sent.time).get(alice.address) ?? 0n;
        const isTaken = balance >= (taken + rate(cpu)) * HOLD_SECONDS;
        if (isTaken) taken += rate(cpu);
        return [sent.itemHash, isTaken ? 'processed' : 'rejected'];
      }),
    );
  }

  test('the same instances are taken and refused', async () => {
    const at = fc.nat(12);
    const world = fc.record({
      grants: fc.uniqueArray(fc.tuple(at, fc.integer({ min: 1, max: 3 * DAY })), {
        selector: ([time]) => time,
        maxLength: 4,
      }),
      wishes: fc.uniqueArray(fc.tuple(at, fc.integer({ min: 1, max: 3 })), {
        selector: ([time]) => time,
        minLength: 1,
        maxLength: 6,
      }),
      batch: fc.integer({ min: 1, max: 5 }),
      keys: fc.array(fc.nat(), { minLength: 10, maxLength: 10 }),
    });
    await fc.assert(
      fc
        .asyncProperty(world, async ({ grants, wishes, batch, keys }) => {
          const paid = grants.map(([time, amount]) => ({ sent: grant(time, amount), time, amount }));
          const wanted = wishes.map(([time, cpu]) => ({ sent: instance(time, cpu), cpu }));
          const entries = paid.flatMap(({ sent, time, amount }) =>
            purchasesOf(parseDistribution(grantOf(amount, `r${time}`))).map((entry) => ({
              ...entry,
              time: sent.time,
              itemHash: sent.itemHash,
            })),
          );
          const all = [...paid, ...wanted]
            .map(({ sent }, index) => ({ sent, key: keys[index]! }))
            .sort((a, b) => a.key - b.key)
            .map(({ sent }) => sent);
          for (let from = 0; from < all.length; from += batch) await put(all.slice(from, from + batch));
          for (const [itemHash, status] of expect(wanted, entries))
            assert.equal((await core.get(`/messages/${itemHash}/status`)).body.status, status);
        })
        .beforeEach(() => clearMessages(core)),
      { numRuns: 40 },
    );
  });
});

describe('a low balance is announced before anything stops', () => {
  test('a credit publisher may stop what is used up, after it said that it was low, and nobody else may', async () => {
    await clearMessages(core);
    await put([grant(1, 10 * DAY)]);
    const machine = instance(2, 1);
    await put([machine]);
    const stop = (signer: Signer, at: number, action = 'stop') =>
      signed(signer, 'INSTANCE_CONTROL', { instance_id: machine.itemHash, action }, at);
    const unannounced = stop(credit, 10);
    await put([unannounced, stop(bob, 30)]);
    assert.equal(await statusOf(unannounced), 'rejected');
    // Used up, and never low: not announced.
    await put([notice(9, 'exhausted')]);
    assert.equal(await statusOf(unannounced), 'rejected');
    const announced = stop(credit, 25);
    await put([announced, notice(20, 'exhausted'), notice(15, 'low')]);
    assert.deepEqual(
      [await statusOf(announced), await statusOf(unannounced), await statusOf(stop(bob, 30))],
      ['processed', 'rejected', 'rejected'],
    );
    assert.equal((await core.get(`/instances/${machine.itemHash}`)).body.desired, 'stopped');
    // Only to stop, and only for as long as it is so.
    const start = stop(credit, 26, 'restart');
    const late = stop(credit, 40);
    await put([start, notice(35, 'ok'), late]);
    assert.deepEqual([await statusOf(start), await statusOf(late)], ['rejected', 'rejected']);
  });

  test('a stop that another publisher signs again later, with its date, is a stop as of that date', async () => {
    await clearMessages(core);
    await put([grant(1, 10 * DAY)]);
    const machine = instance(2, 1);
    await put([machine, notice(15, 'low'), notice(20, 'exhausted')]);
    // The owner has bought credit since, and not started the machine: nobody may stop it now.
    await put([notice(40, 'ok')]);
    const again = signed(credit, 'INSTANCE_CONTROL', { instance_id: machine.itemHash, action: 'stop' }, 25);
    nowMs = (T0 + 5_000) * 1000;
    const late = { ...verifySubmission(again.body, T0 + 5_000), notedMs: nowMs };
    await core.rooms.intake.peer.keep([{ accepted: acceptMessage(late) }]);
    await core.rooms.pipeline.idle();
    assert.equal(await statusOf(again), 'processed');
    assert.equal((await core.get(`/instances/${machine.itemHash}`)).body.desired, 'stopped');
    // What its owner said after that date stays.
    const start = signed(alice, 'INSTANCE_CONTROL', { instance_id: machine.itemHash, action: 'start' }, 45);
    await put([start]);
    assert.equal((await core.get(`/instances/${machine.itemHash}`)).body.desired, 'running');
  });

  test('without credit nobody has a node start an instance; what other nodes took is in force', async () => {
    await clearMessages(core);
    await put([grant(1, 10 * DAY)]);
    const machine = instance(2, 1);
    await put([machine]);
    const used = { address: alice.address, ref: machine.itemHash, nanocredits: `${10 * DAY}000000000` };
    const content = { expense: { start_date: T0 + 3, end_date: T0 + 63, credits: [used] } };
    const spent = signed(credit, 'POST', { type: CREDIT_POST.expense, content }, 4);
    await put([spent, notice(15, 'low'), notice(20, 'exhausted')]);
    const contentOf = (action: string) => ({ instance_id: machine.itemHash, action });
    const control = async (action: string, at: number) => {
      nowMs = (T0 + at) * 1000;
      const draft = { type: 'INSTANCE_CONTROL', content: contentOf(action), timestamp: T0 + at };
      const { status, body } = await core.send(alice, draft, `/instances/${machine.itemHash}/control`);
      return [status, body.code];
    };
    for (const action of ['start', 'restart'])
      assert.deepEqual(await control(action, 30), [402, 'CREDIT_INSUFFICIENT']);
    assert.deepEqual(await control('stop', 31), [200, undefined]);
    const elsewhere = signed(alice, 'INSTANCE_CONTROL', contentOf('start'), 32);
    await put([elsewhere]);
    assert.equal(await statusOf(elsewhere), 'processed');
    await put([grant(40, 1)]);
    assert.deepEqual(await control('start', 50), [200, undefined]);
  });
});
