import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createWrite, migrate, openDatabase, openPool, withClient } from '@skerry/database';
import { startTcpStandby, startTcpTestServer, type TcpTestServer } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { appendEvents, type EventDraft } from '../notify/events/append.ts';
import type { Schema } from '../store/schema.ts';
import { lockWrites } from '../store/write-lock.ts';
import { MIGRATIONS } from '../testing/core.ts';
import { Member } from './processes/member.ts';
import { ROLES } from './processes/roles.ts';

const log = createLogger('test', 'silent');
const EVENT: EventDraft = { kind: 'instance_removed', data: { instance_id: 'f'.repeat(64) } };

interface Server {
  readonly url: string;
}

const ask = async <T extends object>({ url }: Server, query: string) =>
  (await withClient({ connectionString: url }, (client) => client.query<T>(query))).rows;

const lastOf = async (server: Server) =>
  Number((await ask<{ last: string }>(server, 'select last_seq as last from event_counter'))[0]?.last);

/** Writes so many events, as a process does that knows nothing but the database. @returns the number of the last one */
async function writeTo({ url }: Server, count: number): Promise<number> {
  await using database = await openPool<Schema>({ connectionString: url }, { log });
  return createWrite<Schema>(database.pool)(async (writer) => {
    const { lastSeq } = await lockWrites(writer.trx);
    await appendEvents(
      writer,
      lastSeq,
      Array.from({ length: count }, () => EVENT),
      1,
    );
    return lastSeq + count;
  });
}

/** Its standbys receive nothing any more. */
async function cutOff(primary: TcpTestServer): Promise<void> {
  const loadedAt = async () =>
    (await ask<{ at: Date }>(primary, 'select pg_conf_load_time() as at'))[0]?.at.getTime();
  const before = await loadedAt();
  // No line of it lets anybody in who replicates (PostgreSQL documentation, "The pg_hba.conf File").
  await writeFile(
    join(primary.cluster, 'pg_hba.conf'),
    'local all all trust\nhost all all all scram-sha-256\n',
  );
  await ask(primary, 'select pg_reload_conf()');
  await until('it is in force', loadedAt, (at) => at !== before);
  await until(
    'nobody receives anything',
    async () => {
      await ask(primary, 'select pg_terminate_backend(pid) from pg_stat_replication');
      return ask(primary, 'select from pg_stat_replication');
    },
    ({ length }) => length === 0,
  );
}

// 6 CPU seconds.
test('a standby that is promoted without the last events gives none of their numbers to others, and who leads begins anew', async (t) => {
  await using primary = await startTcpTestServer(log);
  {
    await using database = await openPool({ connectionString: primary.url }, { log });
    await migrate({ pool: database.pool, directory: MIGRATIONS, log });
  }
  await using standby = await startTcpStandby(log, primary);
  const hosts = [primary, standby].map(({ url }) => new URL(url).host);
  const databaseUrl = primary.url.replace(hosts[0]!, hosts.join());
  await using database = await openDatabase<Schema>({ databaseUrl, dataDir: '/nonexistent', log });
  const member = await Member.join({
    ...{ db: database.kysely, roles: ROLES, identity: {}, log, signal: t.signal },
    // However long it takes.
    later: () => () => {},
  });
  const held = member.leaseOf('write')!.held!;
  assert.equal(await writeTo(primary, 3), 3);
  await until(
    'the standby has them',
    () => lastOf(standby),
    (last) => last === 3,
  );
  await cutOff(primary);
  assert.equal(await writeTo(primary, 2), 5, 'readers have seen number 5');

  process.kill(primary.pid, 'SIGKILL');
  await ask(standby, 'select pg_promote()');
  assert.equal(await lastOf(standby), 3, 'what readers saw is lost');
  const next = await writeTo(standby, 1);
  assert.ok(next > 5, `a reader that has seen 5 never hears of ${next}`);
  assert.equal(await writeTo(standby, 1), next + 1, 'nothing was lost since');

  const beat = () =>
    member.beat().then(
      () => true,
      () => false,
    );
  await until('a process that leads has found the new primary', beat);
  assert.match(String(held.reason?.message), /another server/, 'what it remembers may be lost');
  await until('it leads again', async () => (await beat()) && member.leads('write'));
});
