import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { SCHEMA_VERSION } from '../../store/schema-version.ts';
import { MIGRATIONS } from '../../testing/core.ts';
import { lead } from './lead.ts';
import { type Later, Lease } from './lease.ts';
import { differences, type Identity, Member } from './member.ts';
import { ROLES, type Role } from './roles.ts';

const log = createLogger('test', 'silent');
const KEYS: Identity = { node: 'a', sealing: 'b', vrf: 'c', files: 'd' };

async function place() {
  const database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const db = database.kysely;
  const stop = new AbortController();
  return {
    db,
    pool: database.pool,
    stop,
    join: (roles: readonly Role[] = ROLES, identity = KEYS, patienceMs = 0) =>
      Member.join({ db, roles, identity, patienceMs, log, signal: stop.signal }),
    /** As if so much time had passed for the rows of this process. */
    age: async ({ id }: Member, seconds: number) => {
      const before = new Date(Date.now() - seconds * 1000);
      await db.updateTable('processes').set({ seen_at: before }).where('id', '=', id).execute();
      await db.updateTable('leases').set({ until: before }).where('holder', '=', id).execute();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** 1.5 CPU seconds, together. */
describe('processes of one node', () => {
  test('one leads each role; when it leaves another one does at once, when it dies after its lease', async () => {
    await using where = await place();
    const [one, two] = [await where.join(), await where.join()];
    assert.deepEqual([one.leads('write'), two.leads('write')], [true, false]);
    await two.beat();
    assert.equal(two.leads('write'), false);
    await one.leave();
    await two.beat();
    assert.deepEqual([one.leads('write'), two.leads('write'), two.leads('index')], [false, true, true]);
    const three = await where.join();
    await where.age(two, 20);
    await three.beat();
    assert.equal(three.leads('write'), true);
    await two.beat();
    assert.equal(two.leads('write'), false, 'who was away for so long learns that another one leads');
  });

  test('a clock of the database that was set back lets another one lead at once, and counts nobody who is gone', async () => {
    await using where = await place();
    const { db } = where;
    const [one, two] = [await where.join(), await where.join()];
    assert.deepEqual([one.leads('write'), one.countOf('write')], [true, 1]);
    // Killed, and an hour later by the clock of then, as on a server whose clock is behind that of the one before.
    await where.age(one, -3_600);
    await two.beat();
    assert.deepEqual([two.leads('write'), two.leads('index'), two.countOf('write')], [true, true, 1]);
    const [{ late } = assert.fail()] = (
      await sql<{
        late: boolean;
      }>`select bool_or(until > clock_timestamp() + interval '5 s') as late from leases`.execute(db)
    ).rows;
    assert.equal(late, false);
  });

  test('to say that it lives, to keep what it leads and to learn who else lives is one statement', async () => {
    await using where = await place();
    const [one] = [await where.join(), await where.join(['answer'])];
    let statements = 0;
    where.pool.on('acquire', () => statements++);
    await one.beat();
    assert.deepEqual([statements, one.leads('write'), one.countOf('answer')], [1, true, 2]);
  });

  test('an answer that comes when the lease was given back does not take it again', async () => {
    await using where = await place();
    const { db } = where;
    const lease = new Lease({ db, name: 'write', holder: randomUUID() });
    const askedMs = performance.now();
    lease.hear(true, askedMs);
    assert.ok(lease.held);
    await lease.pass(0);
    lease.hear(true, askedMs);
    assert.equal(lease.held, undefined);
    lease.hear(true, performance.now());
    assert.ok(lease.held);
  });

  test('only those that have a role lead it, and count', async () => {
    await using where = await place();
    const answering = await where.join(['answer', 'deliver']);
    assert.deepEqual([answering.leads('write'), answering.leads('index')], [false, false]);
    const writing = await where.join(['write']);
    assert.deepEqual([writing.leads('write'), writing.leads('index')], [true, false]);
    await answering.beat();
    assert.deepEqual(
      ROLES.map((role) => answering.countOf(role)),
      [1, 1, 1, 0],
    );
    await where.age(writing, 11);
    await answering.beat();
    assert.equal(answering.countOf('write'), 0);
  });

  test('a role that nobody fills or leads is told, with what waits for it', async () => {
    await using where = await place();
    const answering = await where.join(['answer']);
    assert.match(answering.adviseOn(ROLES)!, /^no process has the role write .* wait; .*deliver.*; .*index/);
    assert.equal(answering.adviseOn(['answer']), undefined);
    const writing = await where.join(['write', 'deliver']);
    const needed = ['answer', 'write', 'deliver'] as const;
    assert.equal(writing.adviseOn(needed), undefined);
    assert.match(answering.adviseOn(needed)!, /role write/, 'it has not looked since');
    await answering.beat();
    assert.equal(answering.adviseOn(needed), undefined);
    await where.db.deleteFrom('leases').execute();
    await answering.beat();
    assert.match(answering.adviseOn(needed)!, /^no process leads write yet: .* wait$/);
  });

  test('one with other keys or files is refused while the first one lives, and told what to copy', async () => {
    await using where = await place();
    const first = await where.join();
    await assert.rejects(where.join(ROLES, { ...KEYS, sealing: 'x', files: 'y' }), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'INVALID_CONFIG');
      assert.match(error.message, /differs in: sealing, files.*sealing\.key.*SKERRY_CORE_S3_ENDPOINT/s);
      return true;
    });
    // Which roles it has says what it needs.
    await where.join(['index'], {});
    await where.age(first, 11);
    await where.join(ROLES, { ...KEYS, sealing: 'x' });
    assert.deepEqual(differences({ a: '1', b: '2' }, { a: '1', b: '3', c: '4' }), ['b']);
  });

  test('where nobody else can be, one that was killed a moment ago holds nothing up', async () => {
    await using where = await place();
    await where.join();
    const { db, stop } = where;
    const identity = { ...KEYS, node: 'x' };
    const next = await Member.join({ db, roles: ROLES, identity, isAlone: true, log, signal: stop.signal });
    assert.equal(next.leads('write'), true);
  });

  test('who is late leads no more where others may, and goes on where nobody else can be', async () => {
    await using where = await place();
    const late = new Set<() => void>();
    const later: Later = (_ms, run) => {
      late.add(run);
      return () => void late.delete(run);
    };
    const { db, stop } = where;
    const options = { db, roles: ROLES, identity: KEYS, later, log, signal: stop.signal };
    const shared = await Member.join(options);
    assert.equal(shared.leads('write'), true);
    for (const run of late) run();
    assert.equal(shared.leads('write'), false);
    const alone = await Member.join({ ...options, isAlone: true });
    for (const run of late) run();
    assert.equal(alone.leads('write'), true);
  });

  test('it is told when a newer release has migrated the database', async () => {
    await using where = await place();
    const { db, stop } = where;
    const told: string[] = [];
    const outgrown = ({ code }: { code: string }) => void told.push(code);
    const options = { db, roles: ROLES, identity: KEYS, outgrown, log, signal: stop.signal };
    const member = await Member.join(options);
    assert.deepEqual(told, []);
    await sql`insert into schema_migrations (version, name, checksum) values (${SCHEMA_VERSION + 1}, 'next', '')`.execute(
      db,
    );
    await member.beat();
    assert.deepEqual(told, ['DATABASE_INCOMPATIBLE']);
  });

  test('of two that start at the same moment with different keys one serves', async () => {
    await using where = await place();
    const ends = await Promise.allSettled([where.join(), where.join(ROLES, { ...KEYS, node: 'x' })]);
    assert.deepEqual(ends.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
  });

  test('work begins with the lease, ends with it, and goes to another process where it cannot be done', async () => {
    await using where = await place();
    const { signal } = where.stop;
    const [one, two] = [await where.join(), await where.join()];
    const did: string[] = [];
    const stand = (member: Member, name: string, fail = false) =>
      lead({ role: 'write', lease: member.leaseOf('write')!, signal, log }, async () => {
        did.push(`${name} begins`);
        if (fail) throw new Error('cannot');
        return { [Symbol.asyncDispose]: async () => void did.push(`${name} ends`) };
      });
    const first = stand(one, 'one');
    await first.begun;
    const second = stand(two, 'two');
    await second.begun;
    assert.deepEqual(did, ['one begins']);
    await one.leave();
    await two.beat();
    await until('the other one works', async () => did.length === 3);
    assert.deepEqual(did, ['one begins', 'one ends', 'two begins']);
    where.stop.abort();
    await Promise.all([first.ended, second.ended]);
    assert.equal(did.at(-1), 'two ends');
  });

  test('it is told each time that a process leads no more, and why', async () => {
    await using where = await place();
    const { signal } = where.stop;
    const [one, two] = [await where.join(), await where.join()];
    const told: string[] = [];
    const sink = { write: (line: string) => void told.push(JSON.parse(line).why ?? 'leads') };
    const work = async () => ({ [Symbol.asyncDispose]: async () => {} });
    const options = {
      role: 'write',
      lease: one.leaseOf('write')!,
      signal,
      log: createLogger('test', 'info', sink),
    } as const;
    const leading = lead(options, work);
    await leading.begun;
    for (let times = 1; times <= 2; times++) {
      await where.age(one, 20);
      await two.beat();
      await one.beat();
      await until('one has lost it', async () => told.length === 2 * times - 1);
      await where.age(two, 20);
      await one.beat();
      await until('one leads again', async () => told.length === 2 * times);
    }
    const lost = 'another process leads';
    assert.deepEqual(told, [lost, 'leads', lost, 'leads']);
    where.stop.abort();
    await leading.ended;
  });

  test('who cannot begin at its start does not start; who cannot later lets another one', async () => {
    await using where = await place();
    const { signal } = where.stop;
    const [one, two] = [await where.join(), await where.join()];
    const cannot = async () => {
      throw new Error('cannot');
    };
    await assert.rejects(lead({ role: 'write', lease: one.leaseOf('write')!, signal, log }, cannot).begun);
    const later = lead({ role: 'write', lease: two.leaseOf('write')!, signal, log }, cannot);
    await later.begun;
    await one.leave();
    await two.beat();
    const three = await where.join();
    await until('a third one leads', async () => {
      await three.beat();
      return three.leads('write');
    });
    assert.equal(two.leads('write'), false);
    where.stop.abort();
    await later.ended;
  });
});
