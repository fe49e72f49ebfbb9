import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { type Database, openPool } from '@skerry/database';
import { createTestDatabase, databaseUrlOf } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex } from '@skerry/protocol';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';
import { NodeSet } from './node-set.ts';
import { SetFollower } from './set-follower.ts';
import { linkTo } from './testing/setup.ts';

const log = createLogger('test', 'silent');

const makeDatabase = () => createTestDatabase<Schema>({ migrations: MIGRATIONS, log });

async function send(core: TestCore, ...values: readonly number[]): Promise<void> {
  for (const n of values) {
    const { status } = await core.send(signers.alice, {
      type: 'POST',
      content: { type: 'note', content: n },
    });
    assert.equal(status, 200);
  }
}

const sizeOf = ({ rooms }: TestCore) => rooms.sync.set.index.size;
const fingerprintOf = ({ rooms: { sync } }: TestCore) => sync.set.index.fingerprint(0, sync.set.index.size);
const lookBoth = (...cores: TestCore[]) => Promise.all(cores.map(({ rooms }) => rooms.sync.look()));

async function countMessages({ pool }: Database<Schema>): Promise<number> {
  const { rows } = await pool.query('select count(*)::int as count from messages');
  return rows[0].count;
}

describe('several processes on one database', () => {
  test('each has the set of all, whoever wrote, also while one is still reading the keys', async () => {
    await using database = await makeDatabase();
    await using one = await createTestCore({ database, log });
    await send(one, 1, 2);
    await using two = await createTestCore({ database, log });
    for (let n = 10; n < 20; n += 2) {
      await send(one, n);
      await send(two, n + 1);
    }
    const reading = two.rooms.sync.load();
    await send(one, 30, 31);
    await reading;
    await lookBoth(one, two);
    const count = await countMessages(database);
    assert.deepEqual([sizeOf(one), sizeOf(two)], [count, count]);
    assert.deepEqual(fingerprintOf(one), fingerprintOf(two));
  });

  test('one that does not lead compares with peers and fetches nothing; what the other one fetched makes it synced', async () => {
    await using peer = await createTestCore({ log });
    await send(peer, 1, 2, 3);
    await using database = await makeDatabase();
    const peers = [linkTo('peer', () => peer)];
    await using leading = await createTestCore({ database, peers, log });
    let leads = false;
    await using standing = await createTestCore({ database, peers, isLeading: () => leads, log });
    const round = ({ rooms }: TestCore) => rooms.sync.syncer.round(new AbortController().signal);
    const stateOf = ({ rooms }: TestCore) => rooms.sync.syncer.view().state;
    assert.equal(await round(standing), false);
    assert.deepEqual([stateOf(standing), sizeOf(standing)], ['syncing', 0]);
    assert.equal(await round(leading), true);
    await standing.rooms.sync.look();
    assert.equal(await round(standing), true);
    assert.deepEqual([stateOf(standing), sizeOf(standing)], ['synced', 3]);
    await send(peer, 4);
    leads = true;
    assert.equal(await round(standing), true);
    assert.equal(sizeOf(standing), 4, 'now it leads');
  });

  test('one that does not lead is in step also while messages come in: what it lacked the last time has come', async () => {
    await using peer = await createTestCore({ log });
    await send(peer, 1);
    await using database = await makeDatabase();
    const peers = [linkTo('peer', () => peer)];
    await using leading = await createTestCore({ database, peers, log });
    await using standing = await createTestCore({ database, peers, isLeading: () => false, log });
    assert.equal(await roundOf(standing), false);
    assert.equal(await roundOf(leading), true);
    await standing.rooms.sync.look();
    await send(peer, 2);
    assert.equal(await roundOf(standing), true);
    assert.equal(standing.rooms.sync.syncer.view().state, 'synced');
    assert.equal(await roundOf(standing), false, 'the second did not come');
  });

  test('what it commits is followed in its order, also where a batch is told before the one that it follows', async () => {
    await using database = await makeDatabase();
    const set = new NodeSet();
    const follower = new SetFollower({ db: database.kysely, set, events: { seen: 0 }, log });
    await follower.load();
    const marks = [null, ...Array.from({ length: 21 }, () => randomUUID())];
    const committed = marks.slice(1).map((mark, at) => ({
      row: { seq: at + 1, mark: mark!, after: marks[at]!, lastEvent: 0 },
      moves: [
        { itemHash: sha256Hex(`${at}`), from: null, to: { time: at, id: new Uint8Array(36).fill(at) } },
      ],
    }));
    const [first, second, third, fourth] = committed;
    for (const one of [third!, second!]) follower.committed(one);
    assert.equal(set.size, 0);
    follower.committed(first!);
    assert.equal(set.size, 3);
    // One that was followed already, and more than are kept.
    follower.committed(second!);
    for (const one of committed.slice(4)) follower.committed(one);
    follower.committed(fourth!);
    // The fifth was dropped, and the others have their turn once it was read.
    assert.equal(set.size, 4);
    follower.committed(committed[4]!);
    assert.equal(set.size, committed.length);
  });

  test('one that was away for so long that its rows are deleted reads the set anew, and has lost nothing', async () => {
    await using database = await makeDatabase();
    await using one = await createTestCore({ database, log });
    await using two = await createTestCore({ database, log });
    await send(one, 1, 2, 3);
    await database.pool.query('delete from set_changes where seq < (select max(seq) from set_changes)');
    await two.rooms.sync.look();
    assert.deepEqual(fingerprintOf(one), fingerprintOf(two));
    await send(two, 4);
    await one.rooms.sync.look();
    assert.equal(sizeOf(one), await countMessages(database));
  });
});

type Made = Awaited<ReturnType<typeof makeDatabase>>;

async function atServer(url: string, statement: string): Promise<void> {
  await using server = await openPool({ connectionString: databaseUrlOf(url, 'postgres') }, { log });
  await server.pool.query(statement);
}

const endConnections = ({ url, name }: Made) =>
  atServer(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);

/** Takes every connection that the pool may have, and asks each. Those that have ended are let go of. */
async function allLeadTo(pool: Made['pool'], name: string): Promise<boolean> {
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  const names = await Promise.all(
    clients.map(async (client) => {
      const row = await client.query('select current_database() as name').then(
        ({ rows }) => rows[0],
        () => undefined,
      );
      client.release(row === undefined);
      return row?.name;
    }),
  );
  return names.every((one) => one === name);
}

const IN_USE = '55006';
const createCopy = ({ url, name }: Made, copy: string) =>
  atServer(url, `create database ${copy} template ${name} strategy file_copy`);

/** The database as it is now, in the same server: what a standby has to which nothing came since. */
async function copyOf(database: Made) {
  const copy = `${database.name}_standby`;
  // The node connects again whenever it likes, and a database that is in use is no template.
  await until('the database is copied', async () => {
    await endConnections(database);
    return createCopy(database, copy).then(
      () => true,
      ({ code }: { code?: unknown }) => code !== IN_USE && Promise.reject(new Error(`SQLSTATE ${code}`)),
    );
  });
  return {
    /** It becomes the primary: connections to the other one end. */
    promote: async () => {
      Object.assign(database.pool.options, { connectionString: databaseUrlOf(database.url, copy) });
      await endConnections(database);
      await until('every connection of the pool leads to it', () => allLeadTo(database.pool, copy));
    },
    [Symbol.asyncDispose]: () => atServer(database.url, `drop database ${copy} with (force)`),
  };
}

const roundOf = ({ rooms }: TestCore) => rooms.sync.syncer.round(new AbortController().signal);

test('a database that comes back without what was acknowledged is noticed, and peers give it back', async () => {
  await using database = await makeDatabase();
  const places: { core?: TestCore; peer?: TestCore } = {};
  await using peer = await createTestCore({ log, peers: [linkTo('core', () => places.core!)] });
  await using core = await createTestCore({ database, log, peers: [linkTo('peer', () => peer)] });
  places.core = core;
  await send(core, 1, 2, 3);
  await using standby = await copyOf(database);
  await send(core, 4, 5, 6);
  assert.ok(await roundOf(peer));
  const told = Number(await core.rooms.events.lastCursor());
  await standby.promote();

  assert.equal(await countMessages(database), 3, 'three that were acknowledged are gone');
  await send(core, 7);
  // The database goes away while the set is read anew: the next look does it again.
  const away = Object.assign(new Error('away'), { code: '57P01' });
  const { set } = core.rooms.sync;
  const { load } = set;
  set.load = () => Promise.reject(away);
  await assert.rejects(core.rooms.sync.look(), away);
  set.load = load;
  await core.rooms.sync.look();
  assert.equal(core.rooms.sync.losses, 1);
  assert.equal(sizeOf(core), 4);
  assert.equal(core.rooms.sync.syncer.view().state, 'syncing');
  assert.ok(Number(await core.rooms.events.lastCursor()) >= told, 'no number is given twice from now on');
  assert.ok(await roundOf(core));
  assert.equal(await countMessages(database), 7);
  assert.ok(await roundOf(peer));
  assert.deepEqual(fingerprintOf(core), fingerprintOf(peer));
  assert.equal(core.rooms.sync.syncer.view().state, 'synced');
});
