import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CREDIT_CHANNEL, CREDIT_POST } from '@skerry/protocol';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

const { alice, credit } = signers;
const T = 1_700_000_000;
/** What instanceContent costs in a day. */
const DAY = 342_000;

let core: TestCore;
let nowMs = T * 1000;
before(async () => {
  core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
});
after(() => core[Symbol.asyncDispose]());

const wish = (at: number, date: number) => {
  nowMs = at * 1000;
  return core.send(alice, { type: 'INSTANCE', content: instanceContent, timestamp: date, nonce: `${date}` });
};

test('H2: what an instance costs, from when on, and whether it can be paid, follow from when it came', async () => {
  const credits = [{ address: alice.address, amount: DAY + 1, ref: 'r' }];
  const content = { type: CREDIT_POST.distribution, content: { distribution: { credits } } };
  await core.send(credit, { type: 'POST', channel: CREDIT_CHANNEL, content, timestamp: T });
  assert.equal((await wish(T + 10, T + 10)).status, 200);
  // Before the first one there would be enough, and the first one would be in its way.
  const dated = await wish(T + 700, T + 5);
  assert.deepEqual([dated.status, dated.body.code], [402, 'CREDIT_INSUFFICIENT']);
  await core.rooms.pipeline.idle();
  const { rows } = { rows: await core.rooms.db.selectFrom('credit_resources').select('created').execute() };
  assert.deepEqual(rows, [{ created: T + 10 }]);
});

test('H2: dated back to a time without a price, it is charged from when it came', async () => {
  const credits = [{ address: alice.address, amount: 10 * DAY, ref: 's' }];
  const content = { type: CREDIT_POST.distribution, content: { distribution: { credits } } };
  nowMs = (T + 1_000) * 1000;
  await core.send(credit, { type: 'POST', channel: CREDIT_CHANNEL, content, timestamp: T + 1_000 });
  const { body } = await wish(T + 2_000, 0);
  const row = await core.rooms.db
    .selectFrom('credit_resources')
    .selectAll()
    .where('item_hash', '=', body.item_hash)
    .executeTakeFirstOrThrow();
  assert.equal(row.created, T + 2_000);
});

test('H2: dated ahead, it is charged from when it is there', async () => {
  const [rate, end] = [3_958_333_333n, 1_700_002_800];
  const charge = async (now: number, time = now) => {
    nowMs = now * 1000;
    const { body: charges } = await core.get(`/credits/charges?kind=instance&time=${time}`);
    return charges.credits.find(({ ref }: { ref: string }) => ref === body.item_hash)?.nanocredits;
  };
  const { status, body } = await wish(end - 300, end + 300);
  assert.equal(status, 200);
  // Deleted when the hour ends, it would have cost nothing.
  assert.equal(await charge(end - 290), String(rate * 290n));
  assert.equal(await charge(end - 290, end - 3_700), undefined);
  assert.equal(await charge(end + 10), String(rate * 3_590n));
  assert.equal(await charge(end + 10, end - 1), undefined);
  assert.equal(await charge(end + 4_000, end + 10), String(rate * 3_300n));
});
