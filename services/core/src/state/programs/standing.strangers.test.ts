import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildNetworkMessage, type NetworkDraft, type Signer } from '@skerry/client';
import { sql } from 'kysely';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';
import { listStanding } from './programs.ts';
import { standingOf } from './standing.ts';

const runtime = { kind: 'named', runtime: 'nodejs', version: null } as const;

test('of a program that runs without being called its runtime is kept, and no more than 16 KiB of filters', () => {
  const standing = (on: unknown) => standingOf({ on, code: 'x' }, { runtime });
  const filters = [{ channel: 'x'.repeat(16_000) }];
  assert.deepEqual(standing({ persistent: true }), {
    ...{ runtime, isPersistent: true, isTriggered: false, filters: [] },
  });
  assert.deepEqual(standing({ message: filters }), {
    ...{ runtime, isPersistent: false, isTriggered: true, filters },
  });
  assert.deepEqual(standing({ message: [...filters, { channel: 'x'.repeat(1_000) }], persistent: true }), {
    ...{ runtime, isPersistent: true, isTriggered: true, filters: [] },
  });
  for (const on of [{ http: true }, { persistent: 'true', message: {} }, null, [], 'x', undefined])
    assert.equal(standing(on), null);
});

const BYTES = { 'content-type': 'application/octet-stream' };

/** @param on what runs it @param time Unix seconds, as its sender dates it */
async function publish(core: TestCore, signer: Signer, on: object, time?: number): Promise<string> {
  const { hash } = (await core.post('/storage/add_file', Buffer.from('code'), BYTES)).body;
  const content = {
    ...{ type: 'vm-function', allow_amend: false, environment: {}, resources: { memory: 64, seconds: 30 } },
    code: { encoding: 'zip', entrypoint: 'main:app', ref: hash },
    ...{ on: { http: true, ...on }, runtime: { ref: 'ab'.repeat(32) } },
  };
  const send = async (draft: NetworkDraft) => {
    const { body, itemHash } = buildNetworkMessage(draft, signer);
    const answer = await core.post('/messages', body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return itemHash;
  };
  await send({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });
  return send({ type: 'PROGRAM', content, ...(time === undefined ? {} : { time }) });
}

test('nobody who dates programs back, or has a thousand, keeps those of others from running', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const listed = async () => (await listStanding(db)).map(({ programHash }) => programHash);
  const honest = await publish(core, signers.alice, { persistent: true });
  const called = await publish(core, signers.alice, {});
  const datedBack = await publish(core, signers.bob, { persistent: true }, 1);
  assert.deepEqual(await listed(), [honest, datedBack], 'the one that was there first');
  await sql`insert into programs (program_hash, owner, content, created, effective, standing)
    select lpad(n::text, 64, '0'), 'mallory', '{}', 1, 1, '{"runtime":null,"isPersistent":true,"isTriggered":true,"filters":[]}'
    from generate_series(1, 2000) n`.execute(db);
  const all = await listed();
  assert.equal(all.length, 1_000);
  assert.deepEqual(
    [honest, datedBack, called].map((hash) => all.includes(hash)),
    [true, true, false],
  );
});

test('filters are measured as a node measures them that is upgraded', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const most = 16 * 1024;
  // As the database writes it: [{"channel": "x"}]
  const long = (bytes: number) => [{ channel: 'x'.repeat(bytes - '[{"channel": ""}]'.length) }];
  const growing = [...long(most - 320), { n: 1e300 }];
  const expected: [filters: unknown[], isKept: boolean][] = [
    [long(most), true],
    [long(most + 1), false],
    [growing, true],
    [[...growing, { n: 1e300 }], false],
  ];
  const hashes: string[] = [];
  for (const [message] of expected)
    hashes.push(await publish(core, signers.alice, { message, persistent: true }));
  const read = async () =>
    (
      await sql<{ program_hash: string; row: string; filters: unknown[] }>`
        select program_hash, to_jsonb(p)::text as row, standing -> 'filters' as filters from programs p order by 1`.execute(
        db,
      )
    ).rows;
  const sent = await read();
  const countOf = (hash: string | undefined) => sent.find((one) => one.program_hash === hash)?.filters.length;
  for (const [at, [filters, isKept]] of expected.entries())
    assert.equal(countOf(hashes[at]), isKept ? filters.length : 0, String(at));
  await sql`alter table programs drop column effective, drop column standing`.execute(db);
  await sql.raw(await readFile(join(MIGRATIONS, '041-standing-programs.sql'), 'utf8')).execute(db);
  assert.deepEqual(await read(), sent);
});

test('nobody who comes later with thousands of keys ends a program that runs, and an owner has ten by age', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  /** @param owner in SQL, of the number `n` */
  const insert = (first: number, count: number, owner: string, effective: number) =>
    sql`insert into programs (program_hash, owner, content, created, effective, standing)
      select lpad(n::text, 64, '0'), ${sql.raw(owner)}, '{}', 1, ${sql.raw(String(effective))}, '{"runtime":null,"isPersistent":true,"isTriggered":false,"filters":[]}'
      from generate_series(${sql.raw(`${first}, ${first + count - 1}`)}) n`.execute(db);
  const listed = async () => (await listStanding(db)).map(({ programHash }) => Number(programHash));
  const range = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);
  await insert(1, 12, "'alice'", 100);
  await insert(101, 2, "'bob'", 200);
  assert.deepEqual(await listed(), [...range(1, 12), 101, 102]);
  await insert(10_001, 2_000, "'mallory' || n", 300);
  assert.deepEqual(await listed(), [...range(1, 10), 101, 102, ...range(10_001, 988)]);
});
