import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createWrite } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, MIGRATIONS, signers } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import type { Accepted } from '../accepted.ts';
import { VerifierPool } from '../verify/pool.ts';
import { loadKept } from './load-known.ts';
import { MAX_BATCH_ROWS, Queue, type Waiting } from './queue.ts';
import {
  fittingRows,
  LINE_PAGE,
  nextLineLimit,
  putInLine,
  putRestInLine,
  readLine,
} from './reconsider-queue.ts';

const { alice } = signers;
const MIB = 1024 * 1024;
const T0 = 1_700_000_000;

const post = (bytes: number, n = 0): Accepted => {
  const draft = { type: 'POST', content: { type: 'note', content: 'x'.repeat(bytes) }, timestamp: T0 };
  const { body } = signMessage({ ...draft, nonce: `${n}` } as MessageDraft, alice);
  return acceptMessage(verifySubmission(Buffer.from(body), T0));
};
const waiting = (accepted: Accepted): Waiting => ({
  ...{ accepted, isPassedOn: false, weight: 'counts' },
  ...{ resolve: () => {}, reject: () => {} },
});

describe('large messages', () => {
  test('bodies that wait to be verified are bounded by what they hold', async () => {
    await using pool = new VerifierPool({ workers: 0, log: createLogger('test', 'silent') });
    const large = Buffer.alloc(MIB, ' ');
    const held = Array.from({ length: 64 }, () => pool.verify(large, T0).catch(() => {}));
    await assert.rejects(pool.verify(large, T0), { code: 'OVERLOADED' });
    void held;
  });

  test('what waits to be written goes into batches of so much, and what can be sent again waits elsewhere', () => {
    const queue = new Queue();
    const half = post(MIB / 2);
    for (let n = 0; n < 32; n++) {
      queue.checkRoom();
      queue.push(waiting(half));
    }
    assert.throws(() => queue.checkRoom(), { code: 'OVERLOADED' });
    // What other nodes pass on is there already.
    queue.push(waiting(post(10, 1)));
    const sizes: number[] = [];
    while (queue.length > 0) sizes.push(queue.takeBatch().length);
    assert.deepEqual(sizes, [15, 15, 3]);
    queue.checkRoom();
    queue.push(waiting(post(9 * MIB, 2)));
    assert.equal(queue.takeBatch().length, 1, 'one that is larger goes alone');
  });

  test('from a batch follow only so many rows, from what is decided again, too', () => {
    const fields = Object.fromEntries(Array.from({ length: MAX_BATCH_ROWS / 4 }, (_, n) => [`f${n}`, n]));
    const element = (n: number) => {
      const draft = {
        type: 'AGGREGATE',
        content: { key: 'k', content: fields },
        timestamp: T0,
        nonce: `${n}`,
      };
      return acceptMessage(verifySubmission(Buffer.from(signMessage(draft as MessageDraft, alice).body), T0));
    };
    const elements = Array.from({ length: 9 }, (_, n) => element(n));
    const queue = new Queue();
    for (const one of [post(1), ...elements, post(2)]) queue.push(waiting(one));
    const sizes: number[] = [];
    while (queue.length > 0) sizes.push(queue.takeBatch().length);
    assert.deepEqual(sizes, [5, 4, 2]);
    const candidates = elements.map((accepted) => ({ accepted, decideByMs: 0 }));
    assert.equal(fittingRows(candidates).length, 4);
    assert.equal(fittingRows(candidates.slice(0, 3)).length, 3);
  });

  test('so many are decided again at once that others who write wait a moment', () => {
    assert.equal(nextLineLimit(1_000, 1_000, 20), 2_000);
    assert.equal(nextLineLimit(2_000, 2_000, 1_000), 400);
    assert.equal(nextLineLimit(2_000, 2_000, 60_000), 32);
    assert.equal(nextLineLimit(3, 3, 10), 6);
  });

  test('however many FORGETs name a message, a few are read with it', async () => {
    await using core = await createTestCore();
    const target = post(1);
    await sql`insert into forgets select ${target.message.itemHash}, n::text from generate_series(1, 10) n`.execute(
      core.rooms.db,
    );
    const kept = await core.rooms.db
      .transaction()
      .execute((trx) => loadKept(trx, [{ accepted: target, decideByMs: 0 }]));
    assert.deepEqual(kept.forgottenBy.get(target.message.itemHash), ['1', '10', '2', '3']);
  });

  test('of what hangs on one key a page is put in line at once, and the rest follows', async () => {
    const log = createLogger('test', 'silent');
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    await using core = await createTestCore({ database });
    const { db, pipeline } = core.rooms;
    const count = 2 * LINE_PAGE + 500;
    await sql`insert into dependencies select key, lpad(n::text, 5, '0') from generate_series(1, ${count}::int) n,
      unnest(array['many']) key union all values ('few', 'a')`.execute(db);
    const inLine = async () => (await db.selectFrom('reconsider').select('item_hash').execute()).length;
    const write = createWrite<Schema>(database.pool);
    assert.equal(await putInLine(db, ['many', 'few', 'none'], []), true);
    assert.equal(await inLine(), LINE_PAGE + 1);
    assert.equal(await putRestInLine(db, write), true);
    assert.equal(await inLine(), 2 * LINE_PAGE + 1);
    // It changes again before all are in line: those that were decided meanwhile are decided again.
    await db.deleteFrom('reconsider').execute();
    await putInLine(db, ['many'], []);
    const sizes: number[] = [];
    do sizes.push(await inLine());
    while (await putRestInLine(db, write));
    // It goes on to the end first, and begins once more after it.
    assert.deepEqual(sizes, [LINE_PAGE, LINE_PAGE + 500, count, count]);
    await db.deleteFrom('reconsider').execute();
    await putInLine(db, ['many'], []);
    pipeline.resume();
    await pipeline.idle();
    assert.deepEqual([await inLine(), await putRestInLine(db, write)], [0, false]);
  });

  test('of thousands of keys what hangs on them stands in line, however many messages hang on any', async () => {
    const log = createLogger('test', 'silent');
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    const db = database.kysely;
    const keys = Array.from({ length: 3_000 }, (_, n) => `key-${n}`);
    // Of each key that changes another message hangs on one that does not.
    for (const hanging of [0, 1, LINE_PAGE - 2, LINE_PAGE, 3 * LINE_PAGE]) {
      await sql`truncate dependencies, reconsider, reconsider_rest`.execute(db);
      await sql`insert into dependencies select case when n % 2 = 0 then 'key-' || n / 4 else 'other' end, n::text
        from generate_series(1, ${hanging}::int) n`.execute(db);
      assert.equal(await putInLine(db, [...keys, ...keys.slice(0, 9)], []), hanging > 1);
      const rows = await db.selectFrom('reconsider').select('item_hash').execute();
      const expected = Array.from({ length: Math.floor(hanging / 2) }, (_, n) => String(2 * (n + 1)));
      assert.deepEqual(rows.map((row) => row.item_hash).sort(), expected.sort());
      assert.deepEqual(await db.selectFrom('reconsider_rest').select('key').execute(), []);
    }
  });

  test('a key on which much hangs, and which changes all the time, holds up no other', async () => {
    const log = createLogger('test', 'silent');
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    const db = database.kysely;
    const write = createWrite<Schema>(database.pool);
    await sql`insert into dependencies select key, key || lpad(n::text, 5, '0') from generate_series(1, ${3 * LINE_PAGE}::int) n,
      unnest(array['security:a', 'security:b']) key
      where key = 'security:a' or n <= ${1.5 * LINE_PAGE}::int`.execute(db);
    for (const key of ['security:a', 'security:b']) await putInLine(db, [key], []);
    const turns: string[][] = [];
    for (let turn = 0; turn < 3; turn++) {
      await db.deleteFrom('reconsider').execute();
      await putRestInLine(db, write);
      const rows = await db.selectFrom('reconsider').select('item_hash').execute();
      turns.push([...new Set(rows.map(({ item_hash }) => item_hash.slice(0, 'security:a'.length)))]);
      await putInLine(db, ['security:a'], []);
    }
    assert.deepEqual(turns, [['security:a'], ['security:b'], ['security:a']]);
    const rest = await db.selectFrom('reconsider_rest').select('key').execute();
    assert.deepEqual(rest, [{ key: 'security:a' }]);
  });

  test('who stands in line longest is decided next, whatever the item hashes, and what is left hanging has its turns', async () => {
    await using core = await createTestCore();
    const { db, pipeline } = core.rooms;
    await sql`insert into reconsider values ('f'), ('0')`.execute(db);
    await sql`insert into reconsider select '1' union all select 'f' on conflict do nothing`.execute(db);
    assert.deepEqual((await readLine(db, 2, [])).hashes, ['f', '0']);
    assert.deepEqual((await readLine(db, 1, ['f'])).hashes, ['0']);
    await sql`insert into dependencies select 'many', lpad(n::text, 5, '0') from generate_series(1, ${LINE_PAGE + 1}::int) n`.execute(
      db,
    );
    // Somebody puts as much in line as is decided, for as long as anything is left hanging.
    await sql`create sequence rounds`.execute(db);
    await sql`create function refill() returns trigger language plpgsql as $$ begin
      if exists (select from reconsider_rest) and nextval('rounds') < 20 then
        insert into reconsider select '0' || n from generate_series(1, 2000) n on conflict do nothing;
      end if;
      return null;
    end $$`.execute(db);
    await sql`create trigger refill after delete on reconsider execute function refill()`.execute(db);
    await putInLine(db, ['many'], []);
    pipeline.resume();
    await pipeline.idle();
    const { rows } = await sql<{ rounds: number }>`select last_value as rounds from rounds`.execute(db);
    assert.ok(rows[0]!.rounds < 20, `${rows[0]!.rounds} rounds until it was its turn`);
  });

  test('messages are decided again a few large ones at a time', async () => {
    await using core = await createTestCore();
    const { db, pipeline } = core.rooms;
    const large = Array.from({ length: 20 }, (_, n) => post(MIB - 2_000, n));
    for (const one of large) await pipeline.submit(one);
    const hashes = large.map(({ message }) => message.itemHash).toSorted();
    await putInLine(db, [], hashes);
    const first = await readLine(db, 2_000, []);
    assert.deepEqual(first.hashes, hashes.slice(0, 8));
    assert.equal(first.messages.length, 8);
    const others = await readLine(db, 2_000, hashes.slice(0, 19));
    assert.deepEqual(others.hashes, hashes.slice(19));
    pipeline.resume();
    await pipeline.idle();
    assert.deepEqual((await readLine(db, 2_000, [])).hashes, []);
  });
});
